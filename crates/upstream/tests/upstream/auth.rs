//! Who we are to a server: nothing is asked before it asks, and what was given is used, renewed and forgotten.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use serde_json::json;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    AuthStatus, Deadline, ExecutionId, HubError, Outcome, Principal, Secret, Source, SourceCall, SourceName,
    SourceState, SourceStatus, SourceTarget,
};
use toolyard_upstream::{
    AuthContext, AuthError, CredentialStore, LoginPrompt, LoginPrompter, ProcessEnvironment,
    ServerAuthSettings, ServerSettings, SupervisorCommand, TransportSettings, Upstream, UpstreamContext,
    UrlKind, UrlSettings, auth_status, login, logout,
};

use crate::authority::Authority;

fn settings(authority: &Authority) -> ServerSettings {
    let url = format!("{}/mcp", authority.url);
    let url = UrlSettings { url, headers: [].into(), kind: UrlKind::Any };
    ServerSettings::new(SourceName::new("files"), TransportSettings::Url(url))
}

fn common(store: &CredentialStore, person: Option<LoginPrompter>) -> UpstreamContext {
    let keeper = SupervisorCommand {
        program: "none".into(),
        args: Vec::new(),
        environment: ProcessEnvironment::default(),
    };
    let me = to_raw(&json!({"name": "test", "version": "1"}));
    let auth = AuthContext { store: store.clone(), client_metadata_url: None, login_prompter: person };
    UpstreamContext { auth, ..UpstreamContext::new(keeper, me).unwrap() }
}

/// Agrees to everything.
fn agreeable() -> LoginPrompter {
    Arc::new(|visit: LoginPrompt| {
        tokio::spawn(async move {
            let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
            let response = http.get(&visit.address).send().await.unwrap();
            http.get(response.headers()[LOCATION].to_str().unwrap()).send().await.unwrap();
        });
    })
}

/// Has the browser on another machine.
fn pasting() -> LoginPrompter {
    Arc::new(|visit: LoginPrompt| {
        tokio::spawn(async move {
            let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
            let response = http.get(&visit.address).send().await.unwrap();
            visit.pasted.send(response.headers()[LOCATION].to_str().unwrap().to_owned()).await.unwrap();
        });
    })
}

async fn settled(upstream: &Upstream) -> SourceStatus {
    for _ in 0..2_000 {
        let status = upstream.status();
        if status.state != SourceState::Starting {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never settled");
}

async fn call(upstream: &Upstream, tool: &str) -> Result<Outcome, HubError> {
    let target = SourceTarget::Tool { name: tool.to_owned(), arguments: to_raw(&json!({})) };
    let call = SourceCall {
        deadline: Deadline::after(Duration::from_secs(10)),
        ..SourceCall::new(ExecutionId::generate()?, target, Principal::owner())
    };
    upstream.call(call).await
}

#[tokio::test]
async fn nothing_is_asked_of_a_server_that_does_not_ask() {
    let authority = Authority::start().await;
    authority.mind.lock().asks = false;
    let common = common(&CredentialStore::memory(), Some(agreeable()));
    let upstream = Upstream::start(settings(&authority), common.clone());
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::Unsupported);
    let refused = login(&settings(&authority), &common, &agreeable()).await.unwrap_err();
    assert!(matches!(refused, AuthError::NothingToDo(_)), "{refused}");
    assert_eq!(authority.mind.lock().count("discovery"), 0);
}

#[tokio::test]
async fn a_login_of_a_running_yard_hands_out_the_address_and_goes_on_by_itself() {
    let authority = Authority::start().await;
    let upstream = Upstream::start(settings(&authority), common(&CredentialStore::memory(), None));
    assert_eq!(settled(&upstream).await.state, SourceState::NeedsAuthorization);
    let (address, same) = tokio::join!(upstream.log_in(), upstream.log_in());
    let address = address.unwrap();
    // Two who begin at once are sent to the same place.
    assert_eq!(same.unwrap(), address);
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let response = http.get(&address).send().await.unwrap();
    http.get(response.headers()[LOCATION].to_str().unwrap()).send().await.unwrap();
    for _ in 0..1_000 {
        if upstream.status().state == SourceState::Ready {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    call(&upstream, "read").await.unwrap();
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::OAuth);
    // Another login is another one.
    assert_ne!(upstream.log_in().await.unwrap(), address);
    upstream.stop().await;
}

#[tokio::test]
async fn where_there_is_nothing_to_log_in_to_nobody_is_sent_anywhere() {
    let authority = Authority::start().await;
    authority.mind.lock().asks = false;
    let upstream = Upstream::start(settings(&authority), common(&CredentialStore::memory(), None));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    let error = upstream.log_in().await.unwrap_err();
    assert_eq!(error.to_string(), "there is nothing to log in to: it does not ask who we are");
    drop(authority);
    let nowhere = ServerSettings::new(
        SourceName::new("nowhere"),
        TransportSettings::Url(UrlSettings {
            url: "http://127.0.0.1:9/mcp".to_owned(),
            headers: [].into(),
            kind: UrlKind::Any,
        }),
    );
    let upstream = Upstream::start(nowhere, common(&CredentialStore::memory(), None));
    let error = upstream.log_in().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot log in to nowhere: it cannot be connected to"), "{error}");
}

#[tokio::test]
async fn waits_for_a_login_says_so_and_comes_back_after_it() {
    let authority = Authority::start().await;
    let store = CredentialStore::memory();
    let upstream = Upstream::start(settings(&authority), common(&store, None));
    let status = settled(&upstream).await;
    assert_eq!(status.state, SourceState::NeedsAuthorization);
    assert_eq!(status.reason.as_deref(), Some("it wants somebody to log in; run: toolyard login files"));
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::NotLoggedIn);
    login(&settings(&authority), &common(&store, None), &pasting()).await.unwrap();
    for _ in 0..1_000 {
        if upstream.status().state == SourceState::Ready {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    call(&upstream, "read").await.unwrap();
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::OAuth);
}

#[tokio::test]
async fn a_token_that_is_good_no_more_is_renewed_once_for_all_calls() {
    let authority = Authority::start().await;
    let upstream =
        Upstream::start(settings(&authority), common(&CredentialStore::memory(), Some(agreeable())));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    authority.revoke();
    let (one, other) = tokio::join!(call(&upstream, "read"), call(&upstream, "read"));
    one.unwrap();
    other.unwrap();
    let mind = authority.mind.lock();
    assert_eq!((mind.count("authorize"), mind.count("refresh_token")), (1, 1));
    assert_eq!(mind.count("tools/call"), 2);
}

#[tokio::test]
async fn a_token_that_is_about_to_expire_is_renewed_before_it_is_used() {
    let authority = Authority::start().await;
    authority.mind.lock().lives = 5;
    let store = CredentialStore::memory();
    login(&settings(&authority), &common(&store, None), &agreeable()).await.unwrap();
    authority.mind.lock().lives = 3600;
    let upstream = Upstream::start(settings(&authority), common(&store, None));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    call(&upstream, "read").await.unwrap();
    assert_eq!(authority.mind.lock().count("refresh_token"), 1);
}

#[tokio::test]
async fn a_call_that_needs_more_says_what_and_the_next_login_asks_for_both() {
    let authority = Authority::start().await;
    let store = CredentialStore::memory();
    login(&settings(&authority), &common(&store, None), &agreeable()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common(&store, None));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    let error = call(&upstream, "write").await.unwrap_err();
    let told = "files refuses the call: it wants somebody to log in again, for write";
    assert_eq!(error.message(), told);
    assert_eq!(error.suggestion(), Some("run: toolyard login files"));
    call(&upstream, "read").await.unwrap();
    login(&settings(&authority), &common(&store, None), &agreeable()).await.unwrap();
    call(&upstream, "write").await.unwrap();
    let mind = authority.mind.lock();
    let asked: Vec<&str> = mind.seen.iter().filter_map(|seen| seen.strip_prefix("authorize ")).collect();
    assert_eq!(asked, ["read", "read write"]);
}

#[tokio::test]
async fn what_was_granted_is_forgotten_on_request() {
    let authority = Authority::start().await;
    let common = common(&CredentialStore::memory(), None);
    let settings = settings(&authority);
    assert_eq!(auth_status(&settings, &common).await.unwrap(), AuthStatus::NotLoggedIn);
    login(&settings, &common, &agreeable()).await.unwrap();
    assert_eq!(auth_status(&settings, &common).await.unwrap(), AuthStatus::OAuth);
    assert!(logout(&settings, &common).await.unwrap());
    assert!(!logout(&settings, &common).await.unwrap());
    assert_eq!(auth_status(&settings, &common).await.unwrap(), AuthStatus::NotLoggedIn);
}

#[tokio::test]
async fn a_configured_token_that_is_refused_asks_nobody() {
    let authority = Authority::start().await;
    let auth = ServerAuthSettings::Bearer(Secret::new("wrong"));
    let settings = ServerSettings { auth, ..settings(&authority) };
    let upstream = Upstream::start(settings, common(&CredentialStore::memory(), Some(agreeable())));
    let status = settled(&upstream).await;
    assert_eq!(status.state, SourceState::NeedsAuthorization);
    assert!(status.reason.unwrap().starts_with("it does not accept the token that is configured"));
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::BearerToken);
    assert_eq!(authority.mind.lock().count("discovery"), 0);
}

/// A new folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("toolyard-logins-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// A store of a file, as a process of its own would have it.
fn store_in(folder: &Path) -> CredentialStore {
    CredentialStore::file(folder.join("credentials.json"))
}

#[tokio::test]
async fn two_processes_that_renew_the_same_login_at_once_both_keep_it() {
    let (authority, folder) = (Authority::start().await, folder("race"));
    login(&settings(&authority), &common(&store_in(&folder), None), &agreeable()).await.unwrap();
    let upstreams = [(); 4].map(|()| Upstream::start(settings(&authority), common(&store_in(&folder), None)));
    for upstream in &upstreams {
        assert_eq!(settled(upstream).await.state, SourceState::Ready);
    }
    {
        let mut mind = authority.mind.lock();
        // Long enough that all of them have read the old token before the new one is there.
        (mind.rotates, mind.refresh_takes) = (true, Duration::from_millis(300));
    }
    authority.revoke();
    let calls = upstreams.iter().map(|upstream| call(upstream, "read"));
    for outcome in futures_util::future::join_all(calls).await {
        outcome.unwrap();
    }
    {
        let mind = authority.mind.lock();
        assert_eq!((mind.count("reused"), mind.count("refresh_token")), (0, 1));
    }
    for upstream in upstreams {
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_renewal_that_its_caller_does_not_wait_for_is_kept_all_the_same() {
    let (authority, folder) = (Authority::start().await, folder("given-up"));
    let common = common(&store_in(&folder), None);
    login(&settings(&authority), &common, &agreeable()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common);
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    {
        let mut mind = authority.mind.lock();
        (mind.rotates, mind.refresh_takes) = (true, Duration::from_millis(300));
    }
    authority.revoke();
    // The caller gives up while the authorization server is at it.
    tokio::time::timeout(Duration::from_millis(150), call(&upstream, "read")).await.unwrap_err();
    call(&upstream, "read").await.unwrap();
    let mind = authority.mind.lock();
    assert_eq!((mind.count("reused"), mind.count("refresh_token")), (0, 1));
}

#[tokio::test]
async fn a_new_token_that_cannot_be_saved_is_used_all_the_same() {
    let (authority, folder) = (Authority::start().await, folder("unsaved"));
    let common = common(&store_in(&folder), None);
    login(&settings(&authority), &common, &agreeable()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common);
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    authority.mind.lock().rotates = true;
    // A folder in the place of the file that is written first: saving fails, reading and locking go on.
    std::fs::create_dir(folder.join(format!("credentials.{}.new", std::process::id()))).unwrap();
    authority.revoke();
    call(&upstream, "read").await.unwrap();
    // A new connection reads what is kept, and must not take the old token for a newer one.
    let met = authority.mind.lock().count("server/discover");
    upstream.reconnect();
    for _ in 0..1_000 {
        let again = authority.mind.lock().count("server/discover") > met;
        if again && upstream.status().state == SourceState::Ready {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    call(&upstream, "read").await.unwrap();
    let mind = authority.mind.lock();
    assert_eq!((mind.count("reused"), mind.count("refresh_token")), (0, 1));
}
