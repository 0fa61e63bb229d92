import json, time
# ONE is put in front: which lie is told.
lies = {
    "an old number": [{"id": 7, "ask": "call", "tool": "x", "arguments": {}}, {"id": 7, "ask": "call", "tool": "x", "arguments": {}}],
    "a negative number": [{"id": -1, "ask": "call", "tool": "x", "arguments": {}}],
    "no object": [{"id": 1, "ask": "call", "tool": "x", "arguments": [1]}],
    "a long name": [{"id": 1, "ask": "call", "tool": "x" * 100000, "arguments": {}}],
    "another kind": [{"id": 1, "ask": "shutdown", "tool": "x"}],
    "another field": [{"id": 1, "ask": "face", "tool": "x", "principal": "root"}],
    "too many": [{"id": number, "ask": "call", "tool": "x", "arguments": {}} for number in range(1, 600)],
    "too long": None,
}
print("trying")
if lies[ONE] is None:
    os.write(3, (1 << 31).to_bytes(4, "little") + b"q")
else:
    for lie in lies[ONE]:
        body = b"q" + json.dumps(lie).encode()
        os.write(3, len(body).to_bytes(4, "little") + body)
time.sleep(60)
