import re

text = (await describe("returns"))
print(re.findall(r"\b[A-Z]\w+", text))
print(re.sub(r"(\d+) (days?)", r"<\1 \2>", text))
match = re.search(r"(?P<number>\d+)\s+(?P<unit>\w+)", text)
print(match.groupdict(), match.span())
print(re.split(r"[.,]\s*", text)[:3])
