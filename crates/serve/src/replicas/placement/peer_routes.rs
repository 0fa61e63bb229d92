//! The requests of other replicas about a server that this one runs. They are authenticated by a
//! sealed header instead of a token. Permissions, limits, audit and history are the responsibility
//! of the replica that received the call.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use futures_util::FutureExt;
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use toolyard_hub::ClientEra;

use super::super::forwarding::misdirected;
use super::frames::{LONGEST_MESSAGE, encode_frame};
use super::message::{
    AnswerMessage, CallMessage, CommandMessage, SessionEndMessage, StateFrame, WatchMessage,
};
use super::peer::{PEER_PATH, PeerAction, PeerRequest};
use super::{PlacedServers, PlacedState, foreign_call, state_stream};
use crate::connections::ConnectionState;
use crate::rest;

/// Returns the route of these requests. It must not be behind the authentication middleware.
pub(crate) fn peer_router(placed: Arc<PlacedServers>) -> Router {
    Router::new().route(&format!("{PEER_PATH}{{action}}"), post(receive)).with_state(placed)
}

async fn receive(
    State(placed): State<Arc<PlacedServers>>,
    Path(action): Path<String>,
    request: Request<Body>,
) -> Response<Body> {
    let connection = request.extensions().get::<Arc<ConnectionState>>().cloned();
    if connection.as_ref().is_some_and(|connection| connection.is_reserved()) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let (head, body) = request.into_parts();
    // Anyone else learns nothing from the response.
    let Some((peer, action)) = placed.peers.open(&head.headers).zip(PeerAction::from_word(&action)) else {
        return rest::not_found().await;
    };
    if let Some(connection) = connection {
        connection.mark_authenticated();
    }
    let Some(server) = placed.find(&peer.server) else { return misdirected() };
    if action == PeerAction::GiveUp {
        // This replica may have a new ID by now and still be stopping the server.
        return match server.surrender(&peer) {
            // The head of the response is sent immediately, which proves that this replica runs.
            Some(stopped) => {
                let end = stopped.map(|()| Ok::<_, Infallible>(Bytes::new()));
                Body::from_stream(end.into_stream()).into_response()
            }
            None => misdirected(),
        };
    }
    if peer.to != placed.peers.replicas.own_id() {
        return misdirected();
    }
    // It may have started after the last beat.
    let is_known = placed.peers.replicas.look_up(&peer.from).await.is_some();
    let peer = PeerRequest { is_known, ..peer };
    match Limited::new(body, LONGEST_MESSAGE).collect().await {
        Ok(body) => perform(server.state(), &peer, action, &body.to_bytes()).await,
        Err(_) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
    }
}

async fn perform(
    server: &Arc<PlacedState>,
    peer: &PeerRequest,
    action: PeerAction,
    body: &Bytes,
) -> Response<Body> {
    let Some(run) = server.local_run() else { return misdirected() };
    match action {
        PeerAction::Call => {
            let message: CallMessage = match parse(body) {
                Ok(message) => message,
                Err(response) => return response,
            };
            match server.admit(&run).await {
                Ok(in_flight) => foreign_call::respond(server, &run, peer, message, in_flight),
                Err(_) => misdirected(),
            }
        }
        PeerAction::Answer => accept(body, |message: AnswerMessage| run.answer(&peer.from, message)),
        PeerAction::Follow => match parse(body) {
            Ok(WatchMessage { uris }) => state_stream::respond(server, run, peer, uris),
            Err(response) => response,
        },
        PeerAction::Watch => {
            let from = &peer.from;
            accept(body, |WatchMessage { uris }| server.update_watches(|watches| watches.replace(from, uris)))
        }
        PeerAction::Discover => {
            let discovery = async move {
                if let Some(discovery) = run.source.discover_era(ClientEra::Legacy) {
                    discovery.await;
                }
                encode_frame(&StateFrame::State(Box::new(state_stream::describe(&run))))
            };
            Body::from_stream(discovery.into_stream()).into_response()
        }
        PeerAction::EndSession => accept(body, |message: SessionEndMessage| {
            run.end_session(&peer.from, message.principal, message.session);
        }),
        PeerAction::Manage => {
            let message: CommandMessage = match parse(body) {
                Ok(message) => message,
                Err(response) => return response,
            };
            match run.source.manage(message.into()) {
                Ok(()) => StatusCode::NO_CONTENT.into_response(),
                Err(_) => StatusCode::CONFLICT.into_response(),
            }
        }
        PeerAction::GiveUp => misdirected(),
    }
}

fn accept<T: DeserializeOwned>(body: &Bytes, work: impl FnOnce(T)) -> Response<Body> {
    match parse(body) {
        Ok(message) => {
            work(message);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => response,
    }
}

/// Parses a message. A replica of another version may send something else.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Response<Body>> {
    serde_json::from_slice(body).map_err(|error| {
        tracing::warn!(%error, "another replica sent an invalid request");
        StatusCode::BAD_REQUEST.into_response()
    })
}
