//! Which variables are passed to servers.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use toolyard_hub::Secret;

use super::ProcessEnvironment;
use crate::settings::{CommandSettings, EnvInheritance};

fn environment(variables: &[(&str, &str)]) -> ProcessEnvironment {
    ProcessEnvironment::new(
        variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))),
    )
}

fn settings(inherit: EnvInheritance, env: &[(&str, &str)]) -> CommandSettings {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
    CommandSettings { program: "sh".to_owned(), args: Vec::new(), env, cwd: None, inherit }
}

fn passed_variables(
    environment: &ProcessEnvironment,
    settings: &CommandSettings,
) -> BTreeMap<String, String> {
    let text = |text: OsString| text.into_string().unwrap();
    environment.for_server(settings).into_iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn names(environment: &ProcessEnvironment, settings: &CommandSettings) -> Vec<String> {
    passed_variables(environment, settings).into_keys().collect()
}

#[test]
fn a_server_gets_what_programs_need_and_nothing_that_may_be_a_secret() {
    let passed = [
        "HOME",
        "LANG",
        "LC_ALL",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "HTTPS_PROXY",
        "https_proxy",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
        "NVM_DIR",
        "VOLTA_HOME",
        "FNM_DIR",
        "PYENV_ROOT",
        "UV_CACHE_DIR",
        "ASDF_DIR",
        "MISE_DATA_DIR",
        "npm_config_cache",
        "NPM_CONFIG_PREFIX",
        "npm_config_registry",
        "UV_INDEX_URL",
        "CARGO_HOME",
    ];
    let withheld = [
        "TOOLYARD_TOKEN",
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "DATABASE_URL",
        "SSH_AUTH_SOCK",
        "NPM_TOKEN",
        "npm_config__authToken",
        "NPM_CONFIG__AUTH",
        "npm_config_otp",
        "npm_config_//registry.npmjs.org/:_authToken",
        "UV_PUBLISH_TOKEN",
        "UV_INDEX_PRIVATE_PASSWORD",
        "UV_GITHUB_TOKEN",
        "NVM_AUTH_HEADER",
        "MISE_GITHUB_TOKEN",
        "__MISE_DIFF",
        "PIP_CONFIG",
        "LD_PRELOAD",
        "path",
    ];
    let all: Vec<(&str, &str)> = passed.iter().chain(&withheld).map(|name| (*name, "value")).collect();
    let mut expected: Vec<String> = passed.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(names(&environment(&all), &settings(EnvInheritance::AllowList, &[])), expected);
}

#[test]
fn an_index_with_a_password_and_a_function_of_a_shell_are_withheld() {
    let environment = environment(&[
        ("UV_INDEX_URL", "https://user:secret@pypi.example/simple"),
        ("PIP_INDEX_URL", "https://pypi.example/simple?token=secret"),
        ("npm_config_registry", "https://npm.example/"),
        ("LC_ALL", "() { curl evil; }"),
    ]);
    assert_eq!(names(&environment, &settings(EnvInheritance::AllowList, &[])), ["npm_config_registry"]);
}

#[test]
fn a_variable_that_the_configuration_takes_a_secret_from_goes_only_to_the_server_that_names_it() {
    let environment = environment(&[("HOME", "/home/ada"), ("XDG_KEY", "s3cret"), ("GITHUB_TOKEN", "t0ken")]);
    environment.set_secrets(BTreeSet::from(["XDG_KEY".to_owned(), "HOME".to_owned()]));
    assert_eq!(names(&environment, &settings(EnvInheritance::AllowList, &[])), ["HOME"]);
    let own = settings(EnvInheritance::AllowList, &[("XDG_KEY", "s3cret"), ("HOME", "/srv")]);
    let expected = [("HOME", "/srv"), ("XDG_KEY", "s3cret")];
    assert_eq!(
        passed_variables(&environment, &own),
        expected.map(|(name, value)| (name.into(), value.into())).into()
    );
}

#[test]
fn everything_is_passed_if_configured() {
    let environment = environment(&[("TOOLYARD_TOKEN", "t"), ("GITHUB_TOKEN", "t"), ("LC_ALL", "() { :; }")]);
    environment.set_secrets(BTreeSet::from(["GITHUB_TOKEN".to_owned()]));
    let everything = settings(EnvInheritance::Everything, &[]);
    assert_eq!(names(&environment, &everything), ["GITHUB_TOKEN", "LC_ALL", "TOOLYARD_TOKEN"]);
    assert_eq!(environment.withheld_note(&everything, &[]), None);
}

#[test]
fn the_note_names_what_was_withheld_without_values_and_is_short() {
    let many: Vec<(String, &str)> = (0..30)
        .map(|number| (format!("A_{number:02}"), "s3cret"))
        .chain([("ZED".to_owned(), "s3cret")])
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let environment = environment(&[&many[..], &[("SHLVL", "1"), ("HOME", "/")]].concat());
    let stderr = ["MY_ZED is fine".to_owned(), "fatal: ZED: not set".to_owned()];
    let note = environment.withheld_note(&settings(EnvInheritance::AllowList, &[]), &stderr).unwrap();
    let expected = "withheld environment variables: ZED, A_00, A_01, A_02, A_03, A_04, A_05, A_06, A_07, A_08 and 21 \
                    more; pass the required ones with `env`, or all of them with `inherit_env = true`";
    assert_eq!(note, expected);
    let nothing = ProcessEnvironment::new([(OsString::from("HOME"), OsString::from("/"))]);
    assert_eq!(nothing.withheld_note(&settings(EnvInheritance::AllowList, &[]), &stderr), None);
}
