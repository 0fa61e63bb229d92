//! `[cluster]`.

use toolyard_cluster::StoreLossPolicy;

use super::Place;

#[test]
fn a_cluster_has_stores_keys_and_an_address() {
    let text = r#"
        [cluster]
        redis = "redis://:${STORE_PASSWORD}@127.0.0.1:6379/3"
        postgres = "postgres://yard@127.0.0.1/toolyard"
        keys = ["${CLUSTER_KEY}", "an older secret that is long enough"]
        advertise = "http://127.0.0.1:9001"
        name = "one"
        on_store_loss = "refuse"
    "#;
    let place = Place::new(&[("toolyard.toml", text)]);
    let place = place.with("STORE_PASSWORD", "hush").with("CLUSTER_KEY", "0123456789abcdef0123456789abcdef");
    let config = place.load(&[]);
    let cluster = config.cluster.unwrap();
    assert_eq!(cluster.redis, "redis://:hush@127.0.0.1:6379/3");
    let database = format!("{:?}", cluster.postgres.as_ref().unwrap());
    assert!(database.contains(r#"database: "127.0.0.1:5432/toolyard""#), "{database}");
    assert_eq!(
        (cluster.name.as_deref(), cluster.advertise.as_deref()),
        (Some("one"), Some("http://127.0.0.1:9001"))
    );
    assert_eq!(cluster.on_store_loss, StoreLossPolicy::Refuse);
    let shown = format!("{cluster:?}");
    assert!(!shown.contains("hush") && !shown.contains("0123456789"), "{shown}");
    assert!(config.secret_variables.contains("STORE_PASSWORD"));
}

#[test]
fn a_cluster_with_unusable_settings_is_refused() {
    let text = r#"
        [cluster]
        redis = "127.0.0.1:6379"
        postgres = "host=127.0.0.1"
        keys = ["too short"]
        advertise = "127.0.0.1:9001"
    "#;
    let problems = Place::new(&[("toolyard.toml", text)]).problems_text(&[]);
    for message in [
        "`cluster.redis` must be a redis:// or rediss:// URL",
        "`cluster.postgres` must be a postgres:// URL",
        "`cluster.keys` must contain at least one secret, each of at least 32 bytes",
        "`cluster.advertise` must be an http:// or https:// URL",
    ] {
        assert!(problems.contains(message), "{problems}");
    }
    let text = r#"
        [cluster]
        redis = "http://:hush@127.0.0.1"
        postgres = "mysql://yard:hush@127.0.0.1"
        keys = ["0123456789abcdef0123456789abcdef"]
    "#;
    let problems = Place::new(&[("toolyard.toml", text)]).problems_text(&[]);
    assert!(problems.contains("`cluster.postgres`") && !problems.contains("hush"), "{problems}");
    let unset = "[cluster]\nredis = \"${STORE}\"\nkeys = [\"${KEY}\"]\n";
    let problems = Place::new(&[("toolyard.toml", unset)]).problems_text(&[]);
    assert!(problems.contains("`cluster.keys.0` cannot be expanded"), "{problems}");
}
