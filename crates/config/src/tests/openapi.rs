//! OpenAPI documents.

use std::time::Duration;

use toolyard_hub::{Secret, SourceName, ToolListing};
use toolyard_openapi::{
    ApiAuthSettings, ApiCredential, Budgets, ClientAuthMethod, ClientCredentials, ConvertSettings,
    DocumentLocation, DocumentSettings, Filters, MissingAuth, OutputSchemaMode, ReferencePolicy,
};

use super::super::ServerEntry;
use super::{Place, entry};

fn text(text: &str) -> String {
    text.to_owned()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns the only document of a `toolyard.toml`, which must have no errors or warnings.
fn document(place: &Place) -> DocumentSettings {
    let config = place.load(&[]);
    assert_eq!(config.problems(), []);
    match &config.servers()[0] {
        ServerEntry::Document(settings) => (**settings).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_key_of_a_document_is_read() {
    let place = Place::new(&[(
        "toolyard.toml",
        r#"
        [servers.pets]
        openapi = "specs/${NAME}.yaml"
        alias = "store"
        base_url = "https://${NAME}.example.com/v1"
        variables = { region = "eu", port = 443 }
        allow_hosts = ["localhost:8000"]
        headers = { X-Client = "toolyard" }
        forward_headers = ["X-Tenant"]
        missing_auth = "send"
        include = { tags = ["pet*"], methods = ["GET"], paths = ["/pets*"], operations = ["list*"] }
        exclude = { tags = ["old"], methods = ["DELETE"], paths = ["/admin/*"], operations = ["drop*"] }
        rename = { listPets = "pets", "GET /x" = "x" }
        describe = { listPets = "All of them." }
        output_schemas = false
        budgets = { input_bytes = 1, output_bytes = 2, description_characters = 3, heavy_bytes = 4 }
        references = "network"
        listed = false
        max_answer_bytes = 1000
        reload_every = "1m"
        start_timeout = 5
        call_timeout = "10s"
        enabled_tools = ["*"]
        disabled_tools = ["x"]
        permissions = { "pets" = ["read"] }
        bearer_token_env_var = "TOKEN"
        [servers.pets.auth]
        key.token = "${TOKEN}"
        basic = { username = "ann", password = "${TOKEN}" }
        oauth = { client_id = "id", client_secret = "${TOKEN}", token_url = "https://t.example", scopes = "a b", client_auth = "body" }
        "#,
    )])
    .with("TOKEN", "t0ken")
    .with("NAME", "pets");
    let secret = || Secret::new("t0ken");
    let client = ClientCredentials {
        id: Secret::new("id"),
        secret: secret(),
        token_url: Some(text("https://t.example")),
        scopes: texts(&["a", "b"]),
        sending: ClientAuthMethod::Body,
    };
    let schemes = [
        (text("key"), ApiCredential::Token(secret())),
        (text("basic"), ApiCredential::Basic { username: Secret::new("ann"), password: secret() }),
        (text("oauth"), ApiCredential::Client(client)),
    ];
    let expected = DocumentSettings {
        name: SourceName::new("store"),
        enabled: true,
        location: DocumentLocation::File(place.folder().join("specs/pets.yaml")),
        base_url: Some(text("https://pets.example.com/v1")),
        variables: [(text("region"), text("eu")), (text("port"), text("443"))].into(),
        allow_hosts: texts(&["localhost:8000"]),
        headers: [(text("X-Client"), Secret::new("toolyard"))].into(),
        forward_headers: texts(&["X-Tenant"]),
        auth: ApiAuthSettings { schemes: schemes.into(), bearer: Some(secret()), missing: MissingAuth::Send },
        convert: ConvertSettings {
            filters: Filters {
                include_tags: texts(&["pet*"]),
                exclude_tags: texts(&["old"]),
                include_methods: texts(&["GET"]),
                exclude_methods: texts(&["DELETE"]),
                include_paths: texts(&["/pets*"]),
                exclude_paths: texts(&["/admin/*"]),
                include_operations: texts(&["list*"]),
                exclude_operations: texts(&["drop*"]),
            },
            renames: [(text("listPets"), text("pets")), (text("GET /x"), text("x"))].into(),
            descriptions: [(text("listPets"), text("All of them."))].into(),
            budgets: Budgets { input_bytes: 1, output_bytes: 2, description_characters: 3, heavy_bytes: 4 },
            output_schemas: OutputSchemaMode::Omit,
        },
        references: ReferencePolicy::Network,
        enabled_tools: Some(texts(&["*"])),
        disabled_tools: texts(&["x"]),
        permissions: Vec::new(),
        tool_permissions: [(text("pets"), texts(&["read"]))].into(),
        listing: ToolListing::Unlisted,
        start_time: Duration::from_secs(5),
        call_time: Duration::from_secs(10),
        largest_answer: 1000,
        reload_every: Duration::from_secs(60),
    };
    let got = document(&place);
    // Compared one by one first, because the settings have a redacted debug output.
    assert_eq!(got.convert, expected.convert);
    assert_eq!(got.auth, expected.auth);
    assert_eq!(got.location, expected.location);
    assert!(got == expected);
}

#[test]
fn a_document_needs_nothing_but_its_place() {
    let place = Place::new(&[("toolyard.toml", "[servers.a]\nopenapi = \"https://a.example/openapi.json\"")]);
    let location = DocumentLocation::Url(text("https://a.example/openapi.json"));
    assert!(document(&place) == DocumentSettings::new(SourceName::new("a"), location));
}

#[test]
fn mistakes_are_told_with_their_place_and_without_secrets() {
    let place = Place::new(&[(
        "toolyard.toml",
        r#"
[servers.both]
openapi = "a.yaml"
url = "https://a.example"
[servers.base]
openapi = "a.yaml"
base_url = "a.example/s3cret"
[servers.ways]
openapi = "a.yaml"
auth.key = { token = "s3cret", username = "ann" }
[servers.half]
openapi = "a.yaml"
auth.oauth = { client_id = "s3cret" }
[servers.unset]
openapi = "a.yaml"
auth.key.token = "${NOT_THERE}"
[servers.word]
openapi = "a.yaml"
missing_auth = "maybe"
[servers.oauth]
openapi = "a.yaml"
oauth = { client_id = "x" }
[servers.header]
openapi = "a.yaml"
auth.key.token = "s3cret\nx"
[servers.odd]
openapi = "https://"
[servers.near]
openapi = "a.yaml"
bas_url = "https://a.example"
"#,
    )]);
    let message = place.problems_text(&[]);
    assert!(!message.contains("s3cret"), "{message}");
    insta::assert_snapshot!(message);
    let config = place.load(&[]);
    assert!(matches!(entry(&config, "near"), ServerEntry::Document(_)));
    assert!(matches!(entry(&config, "both"), ServerEntry::Broken(_)));
}

#[test]
fn output_schemas_are_shown_left_out_or_lenient() {
    let shown = |line: &str| {
        let text = format!("[servers.pets]\nopenapi = \"pets.yaml\"\n{line}");
        document(&Place::new(&[("toolyard.toml", &text)])).convert.output_schemas
    };
    assert_eq!(shown(""), OutputSchemaMode::Exact);
    assert_eq!(shown("output_schemas = true"), OutputSchemaMode::Exact);
    assert_eq!(shown("output_schemas = false"), OutputSchemaMode::Omit);
    assert_eq!(shown("output_schemas = \"lenient\""), OutputSchemaMode::Lenient);
    let wrong = "[servers.pets]\nopenapi = \"pets.yaml\"\noutput_schemas = \"loose\"\n";
    let message = Place::new(&[("toolyard.toml", wrong)]).problems_text(&[]);
    assert!(message.contains("expected true, false or \"lenient\""), "{message}");
}
