//! Permissions: every operation of every front with every kind of token, against the real binary.
//! The table is `authorization/matrix.txt`. An operation that the code offers and the table does
//! not name fails the test.

mod annexes;
mod answer;
mod callers;
mod control;
mod events;
mod http;
mod mcp;
mod origins;
mod table;
mod upstream;
mod yard;

use futures_util::future::join_all;
use toolyard_serve::inventory;

use self::answer::leaked;
use self::callers::Caller;
use self::table::{Row, Table};
use self::yard::World;

const MATRIX: &str = include_str!("authorization/matrix.txt");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_answers_every_kind_of_token_as_the_table_says() {
    let table = Table::read(MATRIX);
    let world = World::start().await;
    let columns: Vec<&str> = world.callers.iter().map(|caller| caller.column).collect();
    assert_eq!(table.columns, columns, "the columns must be the kinds of callers, in this order");
    let mut wrong = world.missing_tools(&table).await;
    for row in &table.rows {
        let observed = join_all(world.callers.iter().map(|caller| observe(&world, row, caller))).await;
        wrong.extend(table.compare(row, &observed));
    }
    world.answers_own_question().await;
    assert!(wrong.is_empty(), "\n{wrong}");
}

async fn observe(world: &World, row: &Row, caller: &Caller) -> String {
    let kind = row.section.split(' ').next().unwrap_or_default();
    let (word, text) = match kind {
        "http" => world.http(row, caller).await,
        "mcp" => world.mcp(row, caller).await,
        "control" => world.control(row, caller).await,
        "tester" => world.tester(row, caller).await,
        "programs" => world.programs(row, caller).await,
        "events" => world.event(row, caller).await,
        other => panic!("unknown section {other}"),
    };
    match leaked(caller, row.operation, &text) {
        Some(server) => format!("{word}!{server}"),
        None => word,
    }
}

/// Whether a request such as `GET /mcp/tools/x` belongs to a route such as `/mcp/tools/{name}`.
fn is_of_route(operation: &str, method: &str, pattern: &str) -> bool {
    let Some((verb, path)) = operation.split_once(' ') else { return false };
    let path = path.split('?').next().unwrap_or_default();
    let mut steps = path.split('/');
    let fits = pattern.split('/').all(|step| {
        // The metadata route accepts paths of any length.
        if pattern.starts_with("/.well-known") && step.starts_with('{') {
            return steps.by_ref().count() > 0;
        }
        steps.next().is_some_and(|given| given == step || (step.starts_with('{') && !given.is_empty()))
    });
    verb == method && fits && steps.next().is_none()
}

#[test]
fn every_operation_of_the_code_is_in_the_table() {
    let table = Table::read(MATRIX);
    let rows =
        |section: &str| -> Vec<&Row> { table.rows.iter().filter(|row| row.section == section).collect() };
    let mut missing = Vec::new();
    for (method, pattern) in inventory::http_requests() {
        if !rows("http").iter().any(|row| is_of_route(row.operation, method, &pattern)) {
            missing.push(format!("[http] {method} {pattern}"));
        }
    }
    for (era, method) in inventory::mcp_methods() {
        let section = format!("mcp {era} /mcp");
        if !rows(&section).iter().any(|row| row.verb() == method) {
            missing.push(format!("[{section}] {method}"));
        }
    }
    for request in inventory::control_requests() {
        if !rows("control").iter().any(|row| row.verb() == request) {
            missing.push(format!("[control] {request}"));
        }
    }
    for event in inventory::control_events() {
        if !rows("events").iter().any(|row| row.rest() == event) {
            missing.push(format!("[events] event {event}"));
        }
    }
    assert!(missing.is_empty(), "not in authorization/matrix.txt:\n{}", missing.join("\n"));
}
