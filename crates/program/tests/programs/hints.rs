//! One test for every entry of the table of hints in `hints.py`.

use super::desk::ran;

/// Runs a script that fails, and returns the hint.
fn hint(code: &str) -> String {
    let answered = ran(code);
    assert!(answered.failed, "{answered:?}");
    // The error of an unknown tool has a suggestion of its own.
    let is_hint = |line: &&str| line.starts_with("hint: ") && !line.starts_with("hint: did you mean `mcp__");
    let lines: Vec<&str> = answered.text.lines().filter(is_hint).collect();
    assert_eq!(lines.len(), 1, "{}", answered.text);
    lines[0].to_owned()
}

#[test]
fn reading_a_file_gets_a_hint() {
    let expected = "hint: programs have no files. Keep data in variables, and use a tool to read or write files; `await search_tools(\"file\")` finds one.";
    assert_eq!(hint("open('data.csv').read()\n"), expected);
    assert_eq!(hint("import pathlib\npathlib.Path('/tmp/x.txt').write_text('x')\n"), expected);
    assert_eq!(hint("import os\nos.listdir('/home')\n"), expected);
    assert_eq!(hint("import csv\nwith open('out.csv', 'w') as file:\n    csv.writer(file)\n"), expected);
    assert_eq!(hint("import tempfile\ntempfile.NamedTemporaryFile()\n"), expected);
}

#[test]
fn the_network_gets_a_hint() {
    let expected = "hint: programs have no network access. Call a tool that fetches what you need; `await search_tools(\"fetch\")` finds one.";
    assert_eq!(hint("from urllib.request import urlopen\nurlopen('http://127.0.0.1:9/')\n"), expected);
    assert_eq!(hint("import requests\nrequests.get('http://127.0.0.1:9/')\n"), expected);
    assert_eq!(hint("import httpx\n"), expected);
    assert_eq!(hint("import socket\nsocket.create_connection(('127.0.0.1', 9))\n"), expected);
    assert_eq!(
        hint("import http.client\nhttp.client.HTTPSConnection('example.com').request('GET', '/')\n"),
        expected
    );
    assert_eq!(hint("import asyncio\nawait asyncio.open_connection('127.0.0.1', 9)\n"), expected);
}

#[test]
fn a_missing_package_gets_a_hint() {
    assert_eq!(
        hint("import pandas as pd\n"),
        "hint: the package `pandas` is not available. Programs have only the standard library, and packages cannot be installed."
    );
    assert_eq!(
        hint("from numpy.linalg import norm\n"),
        "hint: the package `numpy` is not available. Programs have only the standard library, and packages cannot be installed."
    );
}

#[test]
fn importing_tools_gets_a_hint() {
    let expected = "hint: tools need no import; call them by name, as in `data = await get_customer(...)`.";
    assert_eq!(hint("from tools import get_customer\n"), expected);
    assert_eq!(
        hint("import mcp__shop__get_customer\n"),
        expected.replace("get_customer", "mcp__shop__get_customer")
    );
    assert_eq!(hint("from shop import get_customer\n"), expected);
}

#[test]
fn threads_and_processes_get_a_hint() {
    let expected = "hint: programs cannot start threads or processes. `await asyncio.gather(first(...), second(...))` runs tool calls in parallel.";
    assert_eq!(hint("import threading\nthreading.Thread(target=print).start()\n"), expected);
    assert_eq!(
        hint(
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n    pool.submit(print, 1)\n"
        ),
        expected
    );
    assert_eq!(hint("import subprocess\nsubprocess.run(['ls'])\n"), expected);
    assert_eq!(hint("import os\nos.fork()\n"), expected);
    assert_eq!(hint("import os\nos.system('ls')\n"), expected);
    assert_eq!(hint("import multiprocessing\nmultiprocessing.Process(target=print).start()\n"), expected);
    assert_eq!(hint("import asyncio\nawait asyncio.create_subprocess_exec('ls')\n"), expected);
}

#[test]
fn a_function_name_similar_to_a_tool_gets_a_hint() {
    assert_eq!(
        hint("await get_custmer(customer_id=1)\n"),
        "hint: `get_custmer` is not defined; did you mean the tool `mcp__shop__get_customer`?"
    );
    assert_eq!(
        hint("await mcp__shop__getCustomer(customer_id=1)\n"),
        "hint: `mcp__shop__getCustomer` is not defined; did you mean the tool `mcp__shop__get_customer`?"
    );
    // A name that is not similar to any tool gets no hint.
    let text = ran("print(qqqqq)\n").text;
    assert!(!text.contains("hint: "), "{text}");
}

#[test]
fn a_tool_as_attribute_of_its_server_gets_a_hint() {
    let expected =
        "hint: tools are functions, not attributes of a server; write `await mcp__shop__get_customer(...)`.";
    assert_eq!(hint("await shop.get_customer(customer_id=1)\n"), expected);
    assert_eq!(hint("data = await tools.shop.get_customer(customer_id=1)\n"), expected);
    assert_eq!(hint("await mcp.shop.get_customer(customer_id=1)\n"), expected);
    assert_eq!(hint("import json\nprint(json.dumps(await shop.get_customer(customer_id=1)))\n"), expected);
}

#[test]
fn loading_data_as_json_gets_a_hint() {
    let expected = "hint: the result of a tool is already parsed data; remove `json.loads`.";
    assert_eq!(hint("import json\njson.loads(await get_customer(customer_id=1))\n"), expected);
    assert_eq!(hint("import json\njson.loads(await list_orders())\n"), expected);
}

#[test]
fn a_slice_of_a_dict_gets_a_hint() {
    let expected = "hint: this is a dict, not a list, so it cannot be sliced; `print(list(result))` shows its keys, and one of them may hold the list.";
    assert_eq!(
        hint("result = await get_customer(customer_id=1)\nprint(type(result), result[:1])\n"),
        expected.to_owned()
    );
}

#[test]
fn a_call_that_is_not_awaited_gets_a_hint() {
    let expected =
        "hint: a tool call returns a coroutine; write `await` before it, as in `data = await tool(...)`.";
    assert_eq!(hint("result = get_customer(customer_id=1)\nprint(result['name'])\n"), expected);
    assert_eq!(
        hint("import asyncio\nasyncio.create_task(get_customer(customer_id=1))\n"),
        expected.replace(
            "a tool call returns a coroutine",
            "no event loop is running yet, so tasks cannot start"
        )
    );
}
