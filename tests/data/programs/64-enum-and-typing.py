from enum import Enum, IntFlag, auto
from typing import Dict, List, NamedTuple, Optional, TypedDict

class State(Enum):
    NEW = "new"
    PAID = "paid"

class Right(IntFlag):
    READ = auto()
    WRITE = auto()

class Row(NamedTuple):
    name: str
    score: float = 0.5

class Entry(TypedDict, total=False):
    id: int

def best(rows: List[Row], key: Optional[str] = None) -> Dict[str, float]:
    return {row.name: row.score for row in rows}

print(State("paid").name, [state.value for state in State], Right.READ | Right.WRITE == 3)
print(best([Row("a"), Row("b", 1.5)]), Entry(id=1), Row.__annotations__["score"] is float)
