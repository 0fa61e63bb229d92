import base64, hashlib, hmac, uuid
from urllib.parse import parse_qs, quote, urlencode, urlparse

print(hashlib.sha256(b"x").hexdigest()[:16], hmac.new(b"k", b"m", "sha1").hexdigest()[:8])
print(base64.b64encode(b"hello").decode(), uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"))
url = urlparse("https://example.org:8080/a/b?x=1&y=2#z")
print(url.port, url.path, parse_qs(url.query), quote("a b/\u00e4"), urlencode({"q": "x y"}))
