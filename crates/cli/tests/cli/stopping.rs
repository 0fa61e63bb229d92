//! Stopping: a call in flight is answered first, unless a second signal arrives.

use serde_json::{Value, json};
use tokio::net::TcpStream;
use toolyard_testkit::harness::{Call, Client, Line, Over, Process, Server, Signal, Version, within_timeout};

use super::{SERVE, TOOLYARD};

async fn start(over: Over, version: Version) -> Client {
    match over {
        Over::Stdio => Client::over_stdio(Line::start(TOOLYARD, &["stdio"], version), version).await,
        Over::Http => Client::join(&Server::start(TOOLYARD, &SERVE).await, version).await,
    }
}

/// Returns the server process, regardless of the transport.
async fn process(client: &Client) -> tokio::sync::MutexGuard<'_, Process> {
    match client.over {
        Over::Stdio => client.line().process().await,
        Over::Http => client.server().process().await,
    }
}

/// A countdown that has started.
async fn counting(client: &mut Client, arguments: Value) -> Call {
    let mut call = client.begin_watched_call("count_down", arguments, "t").await;
    assert_eq!(call.next().await.unwrap().method(), Some("notifications/progress"));
    call
}

#[tokio::test]
async fn a_call_in_flight_is_answered_before_the_end() {
    for over in Client::BOTH {
        for version in Version::NEWEST {
            for signal in [Signal::Terminate, Signal::Interrupt] {
                let mut client = start(over, version).await;
                let call = counting(&mut client, json!({"from": 6, "delay_ms": 50})).await;
                process(&client).await.signal(signal);
                let answer = call.finish().await.answer;
                assert_eq!(answer.content(), "Lift-off!", "{over:?} {version} {signal:?}");
                let code = process(&client).await.exit().await;
                assert_eq!(code, Some(0), "{over:?} {version} {signal:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    for over in Client::BOTH {
        for signal in [Signal::Terminate, Signal::Interrupt] {
            let mut client = start(over, Version::V2026_07_28).await;
            let mut call = counting(&mut client, json!({"from": 100, "delay_ms": 200})).await;
            process(&client).await.signal(signal);
            match over {
                Over::Http => refused(&client.server().address).await,
                // The server does not announce that it received the signal. Two numbers later it
                // certainly has.
                Over::Stdio => {
                    call.next().await.unwrap();
                    call.next().await.unwrap();
                }
            }
            process(&client).await.signal(signal);
            assert_eq!(process(&client).await.exit().await, Some(130), "{over:?} {signal:?}");
        }
    }
}

#[tokio::test]
async fn a_client_that_closes_its_side_still_gets_its_answer() {
    for version in Version::NEWEST {
        let mut client = start(Over::Stdio, version).await;
        let call = counting(&mut client, json!({"from": 3, "delay_ms": 50})).await;
        client.line().close_stdin().await;
        assert_eq!(call.finish().await.answer.content(), "Lift-off!", "{version}");
        assert!(client.line().try_next().await.is_none(), "{version}");
        assert_eq!(process(&client).await.exit().await, Some(0), "{version}");
    }
}

#[tokio::test]
async fn without_calls_it_ends_at_once() {
    for over in Client::BOTH {
        let mut client = start(over, Version::V2025_11_25).await;
        let standing = match over {
            Over::Http => Some(client.listen(None).await.events()),
            Over::Stdio => None,
        };
        client.ask("ping", "{}").await.answer.result();
        process(&client).await.signal(Signal::Terminate);
        assert_eq!(process(&client).await.exit().await, Some(0), "{over:?}");
        drop(standing);
    }
}

/// Waits until the listener is closed.
async fn refused(address: &str) {
    let closed = async { while TcpStream::connect(address).await.is_ok() {} };
    within_timeout("the listener to close", closed).await;
}
