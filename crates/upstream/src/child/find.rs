//! Looking for a program before it is started: the keeper would find out too, but not in time to say it well.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::SpawnError;
use crate::settings::CommandSettings;

/// Where the system looks without a `PATH`.
const USUAL: &str = "/bin:/usr/bin";

/// Whether there is a program to start and a folder to start it in.
pub fn check_command(settings: &CommandSettings, path: Option<&OsStr>) -> Result<(), SpawnError> {
    let folder = settings.cwd.as_deref().unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(SpawnError::MissingDirectory(folder.to_owned()));
    }
    let own = settings.env.get("PATH").map(|path| OsStr::new(path.reveal()));
    let path = own.or(path).unwrap_or(OsStr::new(USUAL));
    let places = candidate_paths(&settings.program, folder, path);
    let mut unusable = None;
    for place in places {
        match place.metadata() {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => return Ok(()),
            Ok(found) if found.is_file() => unusable = unusable.or(Some(place)),
            Ok(_) | Err(_) => {}
        }
    }
    Err(match unusable {
        Some(path) => SpawnError::NotExecutable { path },
        None => SpawnError::NotFound {
            program: settings.program.clone(),
            suggestion: suggestion(settings, folder, path),
        },
    })
}

/// Where it could be. What is relative is so to the folder that the process starts in.
fn candidate_paths(program: &str, folder: &Path, path: &OsStr) -> Vec<PathBuf> {
    if program.is_empty() {
        return Vec::new();
    }
    if program.contains('/') {
        return vec![folder.join(program)];
    }
    std::env::split_paths(path).map(|place| folder.join(place).join(program)).collect()
}

fn suggestion(settings: &CommandSettings, folder: &Path, path: &OsStr) -> String {
    let program = &settings.program;
    if program.is_empty() {
        return "say which program to start".to_owned();
    }
    if let Some((first, _)) = program.trim().split_once(char::is_whitespace) {
        return format!("the command is one program, such as {first:?}; what follows belongs in `args`");
    }
    if program.starts_with('~') {
        return "`~` is not expanded here; `${HOME}` is".to_owned();
    }
    if program.contains('/') {
        return format!("there is no such file, seen from {}", folder.display());
    }
    if settings.env.contains_key("PATH") {
        // What is configured may be meant for nobody's eyes.
        return "check that it is installed and that PATH in its `env` has its folder".to_owned();
    }
    format!("check that it is installed and that PATH has its folder; it is {}", path.to_string_lossy())
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
    fn refused(settings: &CommandSettings, error: &str, suggestion: &str) {
        let refused = check_command(settings, Some(OsStr::new("/bin:/usr/bin"))).unwrap_err();
        assert_eq!(
            (refused.to_string().as_str(), refused.suggestion().as_deref()),
            (error, Some(suggestion))
        );
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
    fn names_what_is_missing_and_says_what_to_do() {
        let install = "check that it is installed and that PATH has its folder; it is /bin:/usr/bin";
        refused(&settings("no-such"), r#"program "no-such" was not found"#, install);
        let env = BTreeMap::from([("PATH".to_owned(), Secret::new("/nowhere"))]);
        let own = "check that it is installed and that PATH in its `env` has its folder";
        refused(&CommandSettings { env, ..settings("sh") }, r#"program "sh" was not found"#, own);
        let split = r#"the command is one program, such as "sh"; what follows belongs in `args`"#;
        refused(&settings("sh -c true"), r#"program "sh -c true" was not found"#, split);
        let home = "`~` is not expanded here; `${HOME}` is";
        refused(&settings("~/sh"), r#"program "~/sh" was not found"#, home);
        let file = "there is no such file, seen from /bin";
        let there = CommandSettings { cwd: Some("/bin".into()), ..settings("./no-such") };
        refused(&there, r#"program "./no-such" was not found"#, file);
        refused(&settings(""), r#"program "" was not found"#, "say which program to start");
    }

    #[test]
    fn tells_a_file_that_is_no_program_and_a_folder_that_is_none() {
        let refused = check_command(&settings("/etc/passwd"), None).unwrap_err();
        assert_eq!(refused.to_string(), "/etc/passwd cannot be executed");
        let lost = CommandSettings { cwd: Some(PathBuf::from("/nowhere")), ..settings("sh") };
        assert_eq!(check_command(&lost, None).unwrap_err().to_string(), "folder /nowhere does not exist");
    }
}
