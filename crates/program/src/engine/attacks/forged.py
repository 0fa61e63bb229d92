import json, time
# ONE is the name of the forged request.
forgeries = {
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
if forgeries[ONE] is None:
    os.write(3, (1 << 31).to_bytes(4, "little") + b"q")
else:
    for question in forgeries[ONE]:
        body = b"q" + json.dumps(question).encode()
        os.write(3, len(body).to_bytes(4, "little") + body)
time.sleep(60)
