//! One test for every row of the table of hints (`hints.py`): what models get wrong, and what they are told.

use super::desk::ran;

/// Runs a script that fails, and gives back the hint.
fn hint(code: &str) -> String {
    let answered = ran(code);
    assert!(answered.failed, "{answered:?}");
    let lines: Vec<&str> = answered.text.lines().filter(|line| line.starts_with("Hint: ")).collect();
    assert_eq!(lines.len(), 1, "{}", answered.text);
    lines[0].to_owned()
}

#[test]
fn reading_a_file_gets_a_hint() {
    let told = "Hint: a program has no files. Keep data in variables, and use a tool to read or write files; `await search_tools(\"file\")` finds one.";
    assert_eq!(hint("open('data.csv').read()\n"), told);
    assert_eq!(hint("import pathlib\npathlib.Path('/tmp/x.txt').write_text('x')\n"), told);
    assert_eq!(hint("import os\nos.listdir('/home')\n"), told);
    assert_eq!(hint("import csv\nwith open('out.csv', 'w') as file:\n    csv.writer(file)\n"), told);
    assert_eq!(hint("import tempfile\ntempfile.NamedTemporaryFile()\n"), told);
}

#[test]
fn the_network_gets_a_hint() {
    let told = "Hint: a program has no network. Call a tool that fetches what you need; `await search_tools(\"fetch\")` finds one.";
    assert_eq!(hint("from urllib.request import urlopen\nurlopen('http://127.0.0.1:9/')\n"), told);
    assert_eq!(hint("import requests\nrequests.get('http://127.0.0.1:9/')\n"), told);
    assert_eq!(hint("import httpx\n"), told);
    assert_eq!(hint("import socket\nsocket.create_connection(('127.0.0.1', 9))\n"), told);
    assert_eq!(
        hint("import http.client\nhttp.client.HTTPSConnection('example.com').request('GET', '/')\n"),
        told
    );
    assert_eq!(hint("import asyncio\nawait asyncio.open_connection('127.0.0.1', 9)\n"), told);
}

#[test]
fn a_package_that_is_not_there_gets_a_hint() {
    assert_eq!(
        hint("import pandas as pd\n"),
        "Hint: there is no package `pandas`: a program has the standard library only, and nothing can be installed."
    );
    assert_eq!(
        hint("from numpy.linalg import norm\n"),
        "Hint: there is no package `numpy`: a program has the standard library only, and nothing can be installed."
    );
}

#[test]
fn importing_tools_gets_a_hint() {
    let told = "Hint: tools need no import: call them by name, as in `data = await get_customer(...)`.";
    assert_eq!(hint("from tools import get_customer\n"), told);
    assert_eq!(
        hint("import mcp__shop__get_customer\n"),
        told.replace("get_customer", "mcp__shop__get_customer")
    );
    assert_eq!(hint("from shop import get_customer\n"), told);
}

#[test]
fn threads_and_processes_get_a_hint() {
    let told = "Hint: a program cannot start threads or processes. `await asyncio.gather(first(...), second(...))` runs calls of tools at once.";
    assert_eq!(hint("import threading\nthreading.Thread(target=print).start()\n"), told);
    assert_eq!(
        hint(
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n    pool.submit(print, 1)\n"
        ),
        told
    );
    assert_eq!(hint("import subprocess\nsubprocess.run(['ls'])\n"), told);
    assert_eq!(hint("import os\nos.fork()\n"), told);
    assert_eq!(hint("import os\nos.system('ls')\n"), told);
    assert_eq!(hint("import multiprocessing\nmultiprocessing.Process(target=print).start()\n"), told);
    assert_eq!(hint("import asyncio\nawait asyncio.create_subprocess_exec('ls')\n"), told);
}

#[test]
fn a_function_that_is_close_to_a_tool_gets_a_hint() {
    assert_eq!(
        hint("await get_custmer(customer_id=1)\n"),
        "Hint: there is no `get_custmer`; did you mean the tool `mcp__shop__get_customer`?"
    );
    assert_eq!(
        hint("await mcp__shop__getCustomer(customer_id=1)\n"),
        "Hint: there is no `mcp__shop__getCustomer`; did you mean the tool `mcp__shop__get_customer`?"
    );
    // A name that is like no tool is only a name.
    let text = ran("print(qqqqq)\n").text;
    assert!(!text.contains("Hint: "), "{text}");
}

#[test]
fn a_tool_behind_its_server_gets_a_hint() {
    let told =
        "Hint: tools are functions, not members of a server: write `await mcp__shop__get_customer(...)`.";
    assert_eq!(hint("await shop.get_customer(customer_id=1)\n"), told);
    assert_eq!(hint("data = await tools.shop.get_customer(customer_id=1)\n"), told);
    assert_eq!(hint("await mcp.shop.get_customer(customer_id=1)\n"), told);
    assert_eq!(hint("import json\nprint(json.dumps(await shop.get_customer(customer_id=1)))\n"), told);
}

#[test]
fn loading_data_as_json_gets_a_hint() {
    let told = "Hint: the result of a tool is data already; leave `json.loads` out.";
    assert_eq!(hint("import json\njson.loads(await get_customer(customer_id=1))\n"), told);
    assert_eq!(hint("import json\njson.loads(await list_orders())\n"), told);
}

#[test]
fn a_slice_of_a_dict_gets_a_hint() {
    let told = "Hint: this is a dict, not a list, so that it has no slices; `print(list(result))` shows its keys, and one of them may hold the list.";
    assert_eq!(
        hint("result = await get_customer(customer_id=1)\nprint(type(result), result[:1])\n"),
        told.to_owned()
    );
}

#[test]
fn a_call_that_is_not_awaited_gets_a_hint() {
    let told = "Hint: a tool call gives a coroutine until it is awaited; write `await` before it, as in `data = await tool(...)`.";
    assert_eq!(hint("result = get_customer(customer_id=1)\nprint(result['name'])\n"), told);
    assert_eq!(
        hint("import asyncio\nasyncio.create_task(get_customer(customer_id=1))\n"),
        told.replace(
            "a tool call gives a coroutine until it is awaited",
            "there is no event loop yet, so that no task can run"
        )
    );
}
