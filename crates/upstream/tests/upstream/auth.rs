//! Authentication: users are prompted only after a challenge, and tokens are used, renewed and
//! deleted.

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

fn common(store: &CredentialStore, login_prompter: Option<LoginPrompter>) -> UpstreamContext {
    let supervisor = SupervisorCommand {
        program: "none".into(),
        args: Vec::new(),
        environment: ProcessEnvironment::default(),
    };
    let client_info = to_raw(&json!({"name": "test", "version": "1"}));
    let auth = AuthContext { store: store.clone(), client_metadata_url: None, login_prompter };
    UpstreamContext { auth, ..UpstreamContext::new(supervisor, client_info).unwrap() }
}

/// A user who authorizes every request.
fn consenting_user() -> LoginPrompter {
    Arc::new(|prompt: LoginPrompt| {
        tokio::spawn(async move {
            let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
            let response = http.get(&prompt.address).send().await.unwrap();
            http.get(response.headers()[LOCATION].to_str().unwrap()).send().await.unwrap();
        });
    })
}

/// A user whose browser is on another machine.
fn pasting_user() -> LoginPrompter {
    Arc::new(|prompt: LoginPrompt| {
        tokio::spawn(async move {
            let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
            let response = http.get(&prompt.address).send().await.unwrap();
            prompt.pasted.send(response.headers()[LOCATION].to_str().unwrap().to_owned()).await.unwrap();
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
    panic!("the server stays in the state `starting`");
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
async fn a_server_without_authentication_needs_no_login() {
    let authority = Authority::start().await;
    authority.state.lock().requires_token = false;
    let common = common(&CredentialStore::memory(), Some(consenting_user()));
    let upstream = Upstream::start(settings(&authority), common.clone());
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::Unsupported);
    let error = login(&settings(&authority), &common, &consenting_user()).await.unwrap_err();
    assert!(matches!(error, AuthError::NothingToDo(_)), "{error}");
    assert_eq!(authority.state.lock().count("discovery"), 0);
}

#[tokio::test]
async fn a_login_to_a_running_yard_returns_the_address_and_continues_in_the_background() {
    let authority = Authority::start().await;
    let upstream = Upstream::start(settings(&authority), common(&CredentialStore::memory(), None));
    assert_eq!(settled(&upstream).await.state, SourceState::NeedsAuthorization);
    let (address, same) = tokio::join!(upstream.log_in(), upstream.log_in());
    let address = address.unwrap();
    // Concurrent logins get the same address.
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
    // A later login gets a new address.
    assert_ne!(upstream.log_in().await.unwrap(), address);
    upstream.stop().await;
}

#[tokio::test]
async fn a_server_without_login_returns_no_address() {
    let authority = Authority::start().await;
    authority.state.lock().requires_token = false;
    let upstream = Upstream::start(settings(&authority), common(&CredentialStore::memory(), None));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    let error = upstream.log_in().await.unwrap_err();
    assert_eq!(error.to_string(), "login is not available: the server does not require authentication");
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
    assert!(error.starts_with("cannot log in to `nowhere`: cannot connect: "), "{error}");
}

#[tokio::test]
async fn a_server_that_requires_a_login_reconnects_after_it() {
    let authority = Authority::start().await;
    let store = CredentialStore::memory();
    let upstream = Upstream::start(settings(&authority), common(&store, None));
    let status = settled(&upstream).await;
    assert_eq!(status.state, SourceState::NeedsAuthorization);
    assert_eq!(status.reason.as_deref(), Some("login required; run `toolyard login files`"));
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::NotLoggedIn);
    login(&settings(&authority), &common(&store, None), &pasting_user()).await.unwrap();
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
async fn a_revoked_token_is_renewed_once_for_all_calls() {
    let authority = Authority::start().await;
    let upstream =
        Upstream::start(settings(&authority), common(&CredentialStore::memory(), Some(consenting_user())));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    authority.revoke();
    let (one, other) = tokio::join!(call(&upstream, "read"), call(&upstream, "read"));
    one.unwrap();
    other.unwrap();
    let state = authority.state.lock();
    assert_eq!((state.count("authorize"), state.count("refresh_token")), (1, 1));
    assert_eq!(state.count("tools/call"), 2);
}

#[tokio::test]
async fn a_token_that_is_about_to_expire_is_renewed_before_it_is_used() {
    let authority = Authority::start().await;
    authority.state.lock().token_lifetime = 5;
    let store = CredentialStore::memory();
    login(&settings(&authority), &common(&store, None), &consenting_user()).await.unwrap();
    authority.state.lock().token_lifetime = 3600;
    let upstream = Upstream::start(settings(&authority), common(&store, None));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    call(&upstream, "read").await.unwrap();
    assert_eq!(authority.state.lock().count("refresh_token"), 1);
}

#[tokio::test]
async fn a_call_that_needs_another_scope_names_it_and_the_next_login_requests_both() {
    let authority = Authority::start().await;
    let store = CredentialStore::memory();
    login(&settings(&authority), &common(&store, None), &consenting_user()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common(&store, None));
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    let error = call(&upstream, "write").await.unwrap_err();
    let expected = "files rejected the call: login with additional scopes required: write";
    assert_eq!(error.message(), expected);
    assert_eq!(error.suggestion(), Some("run `toolyard login files`"));
    call(&upstream, "read").await.unwrap();
    login(&settings(&authority), &common(&store, None), &consenting_user()).await.unwrap();
    call(&upstream, "write").await.unwrap();
    let state = authority.state.lock();
    let scopes: Vec<&str> =
        state.requests.iter().filter_map(|request| request.strip_prefix("authorize ")).collect();
    assert_eq!(scopes, ["read", "read write"]);
}

#[tokio::test]
async fn logout_deletes_the_stored_credentials() {
    let authority = Authority::start().await;
    let common = common(&CredentialStore::memory(), None);
    let settings = settings(&authority);
    assert_eq!(auth_status(&settings, &common).await.unwrap(), AuthStatus::NotLoggedIn);
    login(&settings, &common, &consenting_user()).await.unwrap();
    assert_eq!(auth_status(&settings, &common).await.unwrap(), AuthStatus::OAuth);
    assert!(logout(&settings, &common).await.unwrap());
    assert!(!logout(&settings, &common).await.unwrap());
    assert_eq!(auth_status(&settings, &common).await.unwrap(), AuthStatus::NotLoggedIn);
}

#[tokio::test]
async fn a_rejected_configured_token_prompts_no_user() {
    let authority = Authority::start().await;
    let auth = ServerAuthSettings::Bearer(Secret::new("wrong"));
    let settings = ServerSettings { auth, ..settings(&authority) };
    let upstream = Upstream::start(settings, common(&CredentialStore::memory(), Some(consenting_user())));
    let status = settled(&upstream).await;
    assert_eq!(status.state, SourceState::NeedsAuthorization);
    assert!(status.reason.unwrap().starts_with("the server rejected the configured token"));
    assert_eq!(upstream.auth_status().await.unwrap(), AuthStatus::BearerToken);
    assert_eq!(authority.state.lock().count("discovery"), 0);
}

/// Returns a path for the files of one test.
fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("toolyard-logins-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// Opens a store in a file, as a separate process would.
fn store_in(directory: &Path) -> CredentialStore {
    CredentialStore::file(directory.join("credentials.json"))
}

#[tokio::test]
async fn processes_that_renew_the_same_login_concurrently_all_keep_it() {
    let (authority, directory) = (Authority::start().await, scratch("race"));
    login(&settings(&authority), &common(&store_in(&directory), None), &consenting_user()).await.unwrap();
    let upstreams =
        [(); 4].map(|()| Upstream::start(settings(&authority), common(&store_in(&directory), None)));
    for upstream in &upstreams {
        assert_eq!(settled(upstream).await.state, SourceState::Ready);
    }
    {
        let mut state = authority.state.lock();
        // Long enough for all processes to read the old token before the new one is stored.
        (state.rotates, state.refresh_delay) = (true, Duration::from_millis(300));
    }
    authority.revoke();
    let calls = upstreams.iter().map(|upstream| call(upstream, "read"));
    for outcome in futures_util::future::join_all(calls).await {
        outcome.unwrap();
    }
    {
        let state = authority.state.lock();
        assert_eq!((state.count("reused"), state.count("refresh_token")), (0, 1));
    }
    for upstream in upstreams {
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_renewal_is_stored_even_if_its_caller_is_gone() {
    let (authority, directory) = (Authority::start().await, scratch("given-up"));
    let common = common(&store_in(&directory), None);
    login(&settings(&authority), &common, &consenting_user()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common);
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    {
        let mut state = authority.state.lock();
        (state.rotates, state.refresh_delay) = (true, Duration::from_millis(300));
    }
    authority.revoke();
    // The caller gives up while the authorization server is still processing the request.
    tokio::time::timeout(Duration::from_millis(150), call(&upstream, "read")).await.unwrap_err();
    call(&upstream, "read").await.unwrap();
    let state = authority.state.lock();
    assert_eq!((state.count("reused"), state.count("refresh_token")), (0, 1));
}

#[tokio::test]
async fn a_new_token_is_used_even_if_it_cannot_be_saved() {
    let (authority, directory) = (Authority::start().await, scratch("unsaved"));
    let common = common(&store_in(&directory), None);
    login(&settings(&authority), &common, &consenting_user()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common);
    assert_eq!(settled(&upstream).await.state, SourceState::Ready);
    authority.state.lock().rotates = true;
    // A directory in place of the temporary file: saving fails, reading and locking still work.
    std::fs::create_dir(directory.join(format!("credentials.{}.new", std::process::id()))).unwrap();
    authority.revoke();
    call(&upstream, "read").await.unwrap();
    // A new connection reads the store and must not mistake the old token for a newer one.
    let handshakes = authority.state.lock().count("server/discover");
    upstream.reconnect();
    for _ in 0..1_000 {
        let reconnected = authority.state.lock().count("server/discover") > handshakes;
        if reconnected && upstream.status().state == SourceState::Ready {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    call(&upstream, "read").await.unwrap();
    let state = authority.state.lock();
    assert_eq!((state.count("reused"), state.count("refresh_token")), (0, 1));
}

/// Waits until the upstream has this state.
async fn reach(upstream: &Upstream, state: SourceState) -> SourceStatus {
    for _ in 0..2_000 {
        let status = upstream.status();
        if status.state == state {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server does not become `{state:?}` but is {:?}", upstream.status());
}

#[tokio::test]
async fn a_logout_by_another_process_disconnects_a_running_yard() {
    let (authority, directory) = (Authority::start().await, scratch("logout"));
    let other = common(&store_in(&directory), None);
    login(&settings(&authority), &other, &consenting_user()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common(&store_in(&directory), None));
    reach(&upstream, SourceState::Ready).await;
    assert!(logout(&settings(&authority), &other).await.unwrap());
    let status = reach(&upstream, SourceState::NeedsAuthorization).await;
    assert_eq!(status.reason.as_deref(), Some("login required; run `toolyard login files`"));
    login(&settings(&authority), &other, &consenting_user()).await.unwrap();
    reach(&upstream, SourceState::Ready).await;
    call(&upstream, "read").await.unwrap();
}

#[tokio::test]
async fn a_new_token_that_could_not_be_saved_is_saved_later() {
    let (authority, directory) = (Authority::start().await, scratch("saved-later"));
    let file = directory.join("credentials.json");
    login(&settings(&authority), &common(&store_in(&directory), None), &consenting_user()).await.unwrap();
    let upstream = Upstream::start(settings(&authority), common(&store_in(&directory), None));
    reach(&upstream, SourceState::Ready).await;
    authority.state.lock().rotates = true;
    let obstacle = directory.join(format!("credentials.{}.new", std::process::id()));
    std::fs::create_dir(&obstacle).unwrap();
    authority.revoke();
    call(&upstream, "read").await.unwrap();
    assert!(!std::fs::read_to_string(&file).unwrap().contains("token-2"));
    std::fs::remove_dir(&obstacle).unwrap();
    for _ in 0..1_000 {
        if std::fs::read_to_string(&file).unwrap().contains("token-2") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Another process can renew the login, which requires the new refresh token.
    authority.revoke();
    let other = Upstream::start(settings(&authority), common(&store_in(&directory), None));
    reach(&other, SourceState::Ready).await;
    assert_eq!(authority.state.lock().count("reused"), 0);
}

#[tokio::test]
async fn a_login_that_cannot_be_read_is_requested_again_and_not_overwritten() {
    let (authority, directory) = (Authority::start().await, scratch("unreadable"));
    let file = directory.join("credentials.json");
    std::fs::create_dir_all(&directory).unwrap();
    let broken = json!({"servers": {format!("files {}/mcp", authority.url): {"token": 7}}}).to_string();
    std::fs::write(&file, &broken).unwrap();
    let upstream = Upstream::start(settings(&authority), common(&store_in(&directory), None));
    let status = reach(&upstream, SourceState::NeedsAuthorization).await;
    let reason = status.reason.unwrap();
    assert!(reason.starts_with("cannot read the stored login: invalid record: "), "{reason}");
    assert!(reason.ends_with("run `toolyard login files`"), "{reason}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
    let other = common(&store_in(&directory), None);
    login(&settings(&authority), &other, &consenting_user()).await.unwrap();
    reach(&upstream, SourceState::Ready).await;
}
