import string
import textwrap

text = await describe("shipping")
print(textwrap.fill(text, width=40, initial_indent="* ", subsequent_indent="  "))
print(textwrap.shorten(text, 30), "|", textwrap.dedent("    x\n      y").splitlines())
print(string.Template("$who owes $$${amount}").substitute(who="Ann", amount=5), string.capwords("a b"))
