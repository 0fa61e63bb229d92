//! Tool definitions: names, descriptions, annotations, and which tools filters select.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolyard_openapi::{Budgets, ConvertSettings, Filters, OutputSchemaMode};

use super::{converted, converted_with, tool, warnings};

const PETS: &str = r##"
openapi: 3.0.3
info: {title: Pets, version: 1.2}
tags: [{name: pets}]
paths:
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, description: Which pet., schema: {type: integer}}
    get:
      operationId: getPetById
      summary: Find a pet
      description: Finds a pet by its number.
      tags: [pets]
      responses:
        200: {description: The pet., content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
        404: {description: No such pet.}
    delete: {tags: [pets, admin], responses: {204: {description: Gone.}}}
    put: {operationId: putPet, x-mcp: false}
  /health:
    get: {operationId: health}
    head: {operationId: health}
components:
  schemas:
    Pet: {type: object, properties: {name: {type: string}}}
"##;

#[test]
fn a_tool_says_what_the_operation_says() {
    assert_eq!(
        tool(&converted(PETS), "get_pet_by_id"),
        json!({
            "name": "get_pet_by_id",
            "title": "Find a pet",
            "description": "Find a pet\n\nFinds a pet by its number.\n\nParameters:\n- petId (path): Which pet.\n\n\
                            Responses:\n- 200: The pet.\n- 404: No such pet.",
            "inputSchema": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {"petId": {"type": "integer", "description": "Which pet."}},
                "required": ["petId"],
                "additionalProperties": false
            },
            "outputSchema": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {"name": {"type": "string"}}
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": true},
            "_meta": {"method": "GET", "path": "/pets/{petId}", "operationId": "getPetById"}
        })
    );
}

#[test]
fn an_operation_without_parameters_has_an_empty_object() {
    assert_eq!(
        tool(&converted(PETS), "health_get")["inputSchema"],
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": false
        })
    );
}

#[test]
fn hints_come_from_the_method() {
    let hints = |method: &str| {
        let document = json!({"openapi": "3.0.0", "paths": {"/": {method: {"operationId": "it"}}}});
        tool(&converted(&document.to_string()), "it")["annotations"].clone()
    };
    for method in ["get", "head", "options"] {
        assert_eq!(hints(method), json!({"readOnlyHint": true, "openWorldHint": true}));
    }
    assert_eq!(hints("delete")["destructiveHint"], true);
    assert_eq!(hints("put")["idempotentHint"], true);
    assert_eq!(hints("post"), json!({"readOnlyHint": false, "openWorldHint": true}));
}

#[test]
fn operations_without_an_id_or_with_the_same_have_names_of_their_own() {
    let conversion = converted(PETS);
    let names: Vec<&str> = conversion.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, ["get_pet_by_id", "delete_pets_by_pet_id", "health_get", "health_head"]);
    assert_eq!((conversion.title.as_str(), conversion.version.as_str()), ("Pets", "1.2"));
    assert_eq!(tool(&conversion, "delete_pets_by_pet_id")["title"], "DELETE /pets/{petId}");
}

#[test]
fn operations_that_share_an_id_are_told_each_with_its_name() {
    let found = converted(PETS).diagnostics;
    let messages: Vec<String> = found
        .iter()
        .filter(|found| found.code == "shared-name")
        .map(|found| format!("{}: {}", found.operation.clone().unwrap_or_default(), found.message))
        .collect();
    assert_eq!(
        messages,
        [
            "GET /health: 2 operations share the name `health`; this one becomes `health_get`",
            "HEAD /health: 2 operations share the name `health`; this one becomes `health_head`",
        ]
    );
}

#[test]
fn names_in_another_script_are_spelled_and_keep_the_original_as_title() {
    let document = json!({"openapi": "3.0.0", "paths": {
        "/users/{номер}": {"get": {"operationId": "получитьПользователя"}},
        "/orders": {"post": {"operationId": "取得"}, "get": {"operationId": "Überprüfen", "summary": "Check"}}
    }});
    let conversion = converted(&document.to_string());
    let named: Vec<(String, Value)> = conversion
        .operations
        .iter()
        .map(|operation| (operation.name.clone(), tool(&conversion, &operation.name)["title"].clone()))
        .collect();
    assert_eq!(
        named,
        [
            ("poluchit_polzovatelya".to_owned(), json!("получитьПользователя")),
            ("post_orders".to_owned(), json!("取得")),
            ("uberprufen".to_owned(), json!("Check")),
        ]
    );
    assert_eq!(
        tool(&conversion, "poluchit_polzovatelya")["inputSchema"]["properties"],
        json!({"nomer": {"title": "номер", "type": "string"}})
    );
}

#[test]
fn an_operation_without_any_text_is_described_by_its_method_and_path() {
    let document = json!({"openapi": "3.0.0", "paths": {"/a": {"get": {"operationId": "it"}}}});
    assert_eq!(tool(&converted(&document.to_string()), "it")["description"], "GET /a");
}

#[test]
fn several_findings_at_one_place_are_all_told() {
    let document = json!({"openapi": "3.0.0", "paths": {"/{a}/{b}/{c}": {"get": {"operationId": "it"}}}});
    let found = converted(&document.to_string()).diagnostics;
    let messages: Vec<&str> = found
        .iter()
        .filter(|found| found.code == "undeclared-parameter")
        .map(|found| found.message.as_str())
        .collect();
    assert_eq!(
        messages,
        ["a", "b", "c"].map(|name| format!("no parameter describes `{{{name}}}`; treated as a string"))
    );
}

#[test]
fn what_an_extension_hides_is_no_tool_and_that_is_told() {
    let found = converted(PETS).diagnostics;
    let hidden: Vec<String> = found
        .iter()
        .filter(|found| found.code == "hidden")
        .map(|found| format!("{} {}", found.operation.clone().unwrap_or_default(), found.message))
        .collect();
    assert_eq!(hidden, ["PUT /pets/{petId} `x-mcp` hides this operation; skipped"]);
}

#[test]
fn filters_choose_operations_and_do_not_change_names() {
    let kept = |filters: Filters| {
        let conversion = converted_with(PETS, &ConvertSettings { filters, ..ConvertSettings::default() });
        conversion.operations.iter().map(|operation| operation.name.clone()).collect::<Vec<_>>()
    };
    let list = |text: &str| vec![text.to_owned()];
    let all = Filters::default;
    assert_eq!(kept(Filters { include_tags: list("admin"), ..all() }), ["delete_pets_by_pet_id"]);
    assert_eq!(
        kept(Filters { exclude_tags: list("ad*"), ..all() }),
        ["get_pet_by_id", "health_get", "health_head"]
    );
    assert_eq!(kept(Filters { include_methods: list("Head"), ..all() }), ["health_head"]);
    assert_eq!(
        kept(Filters { exclude_methods: list("GET"), ..all() }),
        ["delete_pets_by_pet_id", "health_head"]
    );
    assert_eq!(
        kept(Filters { include_paths: list("/pets/*"), ..all() }),
        ["get_pet_by_id", "delete_pets_by_pet_id"]
    );
    assert_eq!(kept(Filters { exclude_paths: list("/p*"), ..all() }), ["health_get", "health_head"]);
    assert_eq!(kept(Filters { include_operations: list("getPet*"), ..all() }), ["get_pet_by_id"]);
    assert_eq!(
        kept(Filters { exclude_operations: list("health"), ..all() }),
        ["get_pet_by_id", "delete_pets_by_pet_id"]
    );
}

#[test]
fn settings_give_other_names_and_descriptions() {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let settings = ConvertSettings {
        renames: map(&[
            ("getPetById", "find"),
            ("DELETE /pets/{petId}", "health_get"),
            ("health_head", "alive"),
        ]),
        descriptions: map(&[("getPetById", "Mine.")]),
        ..ConvertSettings::default()
    };
    let conversion = converted_with(PETS, &settings);
    let names: Vec<&str> = conversion.operations.iter().map(|operation| operation.name.as_str()).collect();
    // A name that is taken gets a hash.
    assert_eq!(names, ["find", "health_get_5ee3b767", "health_get", "alive"]);
    assert_eq!(tool(&conversion, "find")["description"], "Mine.");
}

#[test]
fn output_schemas_can_be_left_out() {
    let settings = ConvertSettings { output_schemas: OutputSchemaMode::Omit, ..ConvertSettings::default() };
    assert!(tool(&converted_with(PETS, &settings), "get_pet_by_id").get("outputSchema").is_none());
}

#[test]
fn lenient_output_schemas_say_only_that_it_is_an_object() {
    let settings =
        ConvertSettings { output_schemas: OutputSchemaMode::Lenient, ..ConvertSettings::default() };
    let conversion = converted_with(PETS, &settings);
    assert_eq!(
        tool(&conversion, "get_pet_by_id")["outputSchema"],
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})
    );
    assert!(tool(&conversion, "health_get").get("outputSchema").is_none());
}

#[test]
fn a_long_description_is_cut_with_a_mark() {
    let document = json!({"openapi": "3.0.0", "paths": {"/": {"get": {"operationId": "it", "description": "word ".repeat(1_000)}}}});
    let tool = tool(&converted(&document.to_string()), "it");
    let description = tool["description"].as_str().unwrap();
    assert_eq!(description.chars().count(), 2_000);
    assert!(description.ends_with(" …"), "{description}");
}

#[test]
fn a_heavy_list_is_told_with_its_weight() {
    let budgets = Budgets { heavy_bytes: 1_000, ..Budgets::default() };
    let conversion = converted_with(PETS, &ConvertSettings { budgets, ..ConvertSettings::default() });
    let whole: usize = conversion.operations.iter().map(|operation| operation.definition.get().len()).sum();
    assert_eq!(conversion.weight, whole + conversion.operations.len() + 1);
    let heavy: Vec<String> =
        warnings(&conversion).into_iter().filter(|found| found.starts_with("heavy")).collect();
    assert_eq!(heavy, ["heavy "]);
}

#[test]
fn webhooks_and_callbacks_are_no_tools_and_that_is_told() {
    let conversion = converted(
        &json!({"openapi": "3.1.0",
            "paths": {"/": {"post": {"operationId": "it", "callbacks": {"done": {"{$request.body#/url}": {"post": {}}}}}}},
            "webhooks": {"new": {"post": {}}}
        })
        .to_string(),
    );
    assert_eq!(conversion.operations.len(), 1);
    let codes: Vec<&str> = conversion.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["webhooks", "callbacks", "no-good-response"]);
}

#[test]
fn paths_and_operations_may_be_elsewhere() {
    let conversion = converted(
        &json!({"openapi": "3.1.0",
            "paths": {"/a": {"$ref": "#/components/pathItems/A"}, "/b": {"$ref": "#/nowhere"}, "/c": 5, "/d": {"get": 7}},
            "components": {"pathItems": {"A": {"get": {"operationId": "it"}}}}
        })
        .to_string(),
    );
    assert_eq!(conversion.operations.len(), 1);
    assert_eq!(
        warnings(&conversion),
        [
            "dangling-reference /paths/~1b",
            "left-out /paths/~1b",
            "wrong-type /paths/~1c",
            "left-out /paths/~1c",
            "wrong-type /paths/~1d/get",
            "left-out /paths/~1d/get",
        ]
    );
}
