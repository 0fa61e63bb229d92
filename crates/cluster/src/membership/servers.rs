//! Which replica runs a server that must run only once. The lease of a server lasts as long as its
//! holder is alive, so it needs no renewal. How servers are started and stopped belongs to `serve`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use redis::Script;
use toolyard_hub::{PreviousHolder, ReplicaId, ServerClaim, ServerHolder, StoreUnavailable};

use super::{DEAD_AFTER, Membership, SESSION_LIFETIME, gone_key, millis, seen_key, servers_key, store_key};

static CLAIM_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("claim_server.lua")));
static RELEASE_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_server.lua")));

impl Membership {
    /// Notes which replica runs which server.
    pub(super) fn update_servers(&self, holders: BTreeMap<String, String>) {
        {
            let mut state = self.lock();
            if state.server_holders == holders {
                return;
            }
            state.server_holders = holders;
        }
        self.server_changes.send_modify(|changes| *changes += 1);
    }

    pub(super) async fn find_server_holder(
        &self,
        server: &str,
        claim: ServerClaim,
    ) -> Result<ServerHolder, StoreUnavailable> {
        let (id, url) = {
            let state = self.lock();
            (state.id.clone(), state.own.url.clone())
        };
        let word = match claim {
            ServerClaim::No => "no",
            ServerClaim::IfFree => "free",
            ServerClaim::Held => "held",
        };
        let mut script = CLAIM_SCRIPT.prepare_invoke();
        script.key(seen_key()).key(servers_key()).key(store_key());
        script.arg(server).arg(id.as_str()).arg(url).arg(word);
        script.arg(millis(DEAD_AFTER)).arg(gone_key("")).arg(millis(SESSION_LIFETIME));
        let answer: Option<(String, String)> = self.store.run(&script).await?;
        let Some((holder, previous)) = answer else {
            return Err(StoreUnavailable("it is not known yet whether another replica runs it".to_owned()));
        };
        if holder.is_empty() {
            return Ok(ServerHolder::Nowhere);
        }
        let holder = ReplicaId::new(&holder);
        if holder == id {
            return Ok(ServerHolder::Here { previous: parse_holder(&previous) });
        }
        if self.lock().replica(&holder).is_none() {
            // It may have started after the last beat.
            self.refresh().await;
        }
        self.lock()
            .replica(&holder)
            .map(ServerHolder::Elsewhere)
            .ok_or_else(|| StoreUnavailable("the replica that runs it is not known yet".to_owned()))
    }

    pub(super) async fn give_up_server(&self, server: &str) -> Result<(), StoreUnavailable> {
        let mut script = RELEASE_SCRIPT.prepare_invoke();
        script.key(servers_key()).arg(server).arg(self.lock().id.as_str());
        self.store.run::<i64>(&script).await.map(drop)
    }
}

fn parse_holder(value: &str) -> Option<PreviousHolder> {
    let (id, url) = value.split_once(' ')?;
    Some(PreviousHolder { id: ReplicaId::new(id), url: url.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use toolyard_hub::Replicas;

    use super::super::ReplicaRecord;
    use super::{Membership, parse_holder};
    use crate::store::RedisStore;

    #[tokio::test]
    async fn a_change_of_holders_is_announced_once() {
        let store = RedisStore::open("redis://127.0.0.1:1/").unwrap();
        let membership = Membership::new(store, ReplicaRecord::default()).unwrap();
        let changes = membership.server_changes();
        let holders = BTreeMap::from([("memory".to_owned(), "r1 http://a".to_owned())]);
        for (known, expected) in [(holders.clone(), 1), (holders, 1), (BTreeMap::new(), 2)] {
            membership.update_servers(known);
            assert_eq!(*changes.borrow(), expected);
        }
    }

    #[test]
    fn a_holder_is_an_id_and_a_url() {
        let holder = parse_holder("r1 http://a:8080").unwrap();
        assert_eq!((holder.id.as_str(), holder.url.as_str()), ("r1", "http://a:8080"));
        assert_eq!(parse_holder(""), None);
        assert_eq!(parse_holder("-"), None);
    }
}
