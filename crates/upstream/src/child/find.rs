//! Looking up a program before it is started. The supervisor would also notice that it is missing,
//! but too late for a good error message.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::SpawnError;
use crate::settings::CommandSettings;

/// The default search path without a `PATH`.
const USUAL: &str = "/bin:/usr/bin";

/// Checks that the program and its working directory exist.
pub fn check_command(settings: &CommandSettings, path: Option<&OsStr>) -> Result<(), SpawnError> {
    let directory = settings.cwd.as_deref().unwrap_or(Path::new("."));
    if !directory.is_dir() {
        return Err(SpawnError::MissingDirectory(directory.to_owned()));
    }
    let own = settings.env.get("PATH").map(|path| OsStr::new(path.reveal()));
    let path = own.or(path).unwrap_or(OsStr::new(USUAL));
    let mut unusable = None;
    for candidate in candidate_paths(&settings.program, directory, path) {
        match candidate.metadata() {
            Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => return Ok(()),
            Ok(file) if file.is_file() => unusable = unusable.or(Some(candidate)),
            Ok(_) | Err(_) => {}
        }
    }
    Err(match unusable {
        Some(path) => SpawnError::NotExecutable { path },
        None => SpawnError::NotFound {
            program: settings.program.clone(),
            suggestion: suggestion(settings, directory, path),
        },
    })
}

/// Returns the paths where the program may be. Relative paths start at the working directory of the
/// process.
fn candidate_paths(program: &str, directory: &Path, path: &OsStr) -> Vec<PathBuf> {
    if program.is_empty() {
        return Vec::new();
    }
    if program.contains('/') {
        return vec![directory.join(program)];
    }
    std::env::split_paths(path).map(|entry| directory.join(entry).join(program)).collect()
}

fn suggestion(settings: &CommandSettings, directory: &Path, path: &OsStr) -> String {
    let program = &settings.program;
    if program.is_empty() {
        return "set the program to start".to_owned();
    }
    if let Some((first, _)) = program.trim().split_once(char::is_whitespace) {
        return format!("the command is only the program, such as {first:?}; move the rest to `args`");
    }
    if program.starts_with('~') {
        return "`~` is not expanded; use `${HOME}`".to_owned();
    }
    if program.contains('/') {
        return format!("check the path; relative paths are resolved from `{}`", directory.display());
    }
    if settings.env.contains_key("PATH") {
        // The configured value may be a secret, so it is not shown.
        return "check that it is installed and that its directory is in the PATH set in `env`".to_owned();
    }
    let path = path.to_string_lossy();
    format!("check that it is installed and that its directory is in PATH ({path})")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::path::PathBuf;

    use super::check_command;
    use toolyard_hub::Secret;

    use crate::settings::{CommandSettings, EnvInheritance};

    fn settings(program: &str) -> CommandSettings {
        CommandSettings {
            program: program.to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            inherit: EnvInheritance::AllowList,
        }
    }

    #[track_caller]
    fn fails(settings: &CommandSettings, message: &str, suggestion: &str) {
        let error = check_command(settings, Some(OsStr::new("/bin:/usr/bin"))).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.suggestion().as_deref()), (message, Some(suggestion)));
    }

    #[test]
    fn finds_what_the_system_would_find() {
        let path = Some(OsStr::new("/nowhere:/bin"));
        check_command(&settings("sh"), path).unwrap();
        check_command(&settings("sh"), None).unwrap();
        check_command(&settings("/bin/sh"), Some(OsStr::new(""))).unwrap();
        check_command(&CommandSettings { cwd: Some("/bin".into()), ..settings("./sh") }, path).unwrap();
        check_command(&CommandSettings { cwd: Some("/bin".into()), ..settings("sh") }, Some(OsStr::new(".")))
            .unwrap();
        let env = BTreeMap::from([("PATH".to_owned(), Secret::new("/bin"))]);
        check_command(&CommandSettings { env, ..settings("sh") }, Some(OsStr::new("/nowhere"))).unwrap();
    }

    #[test]
    fn a_missing_program_has_a_specific_suggestion() {
        let install = "check that it is installed and that its directory is in PATH (/bin:/usr/bin)";
        fails(&settings("no-such"), r#"program "no-such" was not found"#, install);
        let env = BTreeMap::from([("PATH".to_owned(), Secret::new("/nowhere"))]);
        let own = "check that it is installed and that its directory is in the PATH set in `env`";
        fails(&CommandSettings { env, ..settings("sh") }, r#"program "sh" was not found"#, own);
        let split = r#"the command is only the program, such as "sh"; move the rest to `args`"#;
        fails(&settings("sh -c true"), r#"program "sh -c true" was not found"#, split);
        let home = "`~` is not expanded; use `${HOME}`";
        fails(&settings("~/sh"), r#"program "~/sh" was not found"#, home);
        let file = "check the path; relative paths are resolved from `/bin`";
        let missing = CommandSettings { cwd: Some("/bin".into()), ..settings("./no-such") };
        fails(&missing, r#"program "./no-such" was not found"#, file);
        fails(&settings(""), r#"program "" was not found"#, "set the program to start");
    }

    #[test]
    fn rejects_a_file_that_is_not_executable_and_a_missing_directory() {
        let error = check_command(&settings("/etc/passwd"), None).unwrap_err();
        assert_eq!(error.to_string(), "/etc/passwd is not executable");
        let lost = CommandSettings { cwd: Some(PathBuf::from("/nowhere")), ..settings("sh") };
        assert_eq!(check_command(&lost, None).unwrap_err().to_string(), "directory /nowhere does not exist");
    }
}
