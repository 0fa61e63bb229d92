import difflib, html, pprint
import xml.etree.ElementTree as ET

print(difflib.get_close_matches("appel", ["ape", "apple", "peach"]), html.escape("<a & b>"))
print("\n".join(difflib.unified_diff(["a", "b"], ["a", "c"], lineterm="")))
pprint.pprint({"key": list(range(30)), "other": {"x": "y" * 60}}, width=60)
root = ET.fromstring("<r><i n='1'>x</i><i n='2'/></r>")
print([(i.get("n"), i.text) for i in root.iter("i")])
