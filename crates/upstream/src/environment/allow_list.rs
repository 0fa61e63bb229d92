//! The allow list: variables that programs need to find their files, use the locale of the user and
//! reach the network. A variable is listed only if its value is a path, a switch or a locale.
//! Families that include tokens (`NPM_CONFIG_*`, `UV_*`, `NVM_*`, `MISE_*`) are listed
//! individually.

/// Variables that the system sets for every process. The official SDKs pass these.
const BASIC: [&str; 9] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

const LISTED: &[&str] = &[
    // The terminal and the locale.
    "COLORTERM",
    "FORCE_COLOR",
    "LANGUAGE",
    "NO_COLOR",
    "TEMP",
    "TMP",
    // Certificates: paths, and whether to use those of the system.
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Node, its installers and version managers.
    "BUN_INSTALL",
    "COREPACK_HOME",
    "DENO_DIR",
    "DENO_INSTALL_ROOT",
    "FNM_ARCH",
    "FNM_COREPACK_ENABLED",
    "FNM_DIR",
    "FNM_LOGLEVEL",
    "FNM_MULTISHELL_PATH",
    "FNM_RESOLVE_ENGINES",
    "FNM_VERSION_FILE_STRATEGY",
    "NODENV_ROOT",
    "NODENV_VERSION",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_USE_ENV_PROXY",
    "NVM_BIN",
    "NVM_DIR",
    "NVM_INC",
    "N_PREFIX",
    "PNPM_HOME",
    "VOLTA_HOME",
    "YARN_CACHE_FOLDER",
    // Python, its installers and version managers.
    "CONDA_DEFAULT_ENV",
    "CONDA_EXE",
    "CONDA_PREFIX",
    "PIPX_BIN_DIR",
    "PIPX_HOME",
    "PYENV_ROOT",
    "PYENV_SHELL",
    "PYENV_VERSION",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONIOENCODING",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "PYTHONUSERBASE",
    "PYTHONUTF8",
    "UV_CACHE_DIR",
    "UV_COMPILE_BYTECODE",
    "UV_CONCURRENT_DOWNLOADS",
    "UV_CONFIG_FILE",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX_STRATEGY",
    "UV_LINK_MODE",
    "UV_NATIVE_TLS",
    "UV_NO_CACHE",
    "UV_NO_CONFIG",
    "UV_OFFLINE",
    "UV_PYTHON",
    "UV_PYTHON_DOWNLOADS",
    "UV_PYTHON_INSTALL_DIR",
    "UV_PYTHON_PREFERENCE",
    "UV_SYSTEM_CERTS",
    "UV_TOOL_BIN_DIR",
    "UV_TOOL_DIR",
    "VIRTUAL_ENV",
    // Other languages, version managers and containers.
    "ASDF_CONFIG_FILE",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "CARGO_HOME",
    "CONTAINER_HOST",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GOBIN",
    "GOPATH",
    "GOROOT",
    "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX",
    "HOMEBREW_REPOSITORY",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "MISE_CACHE_DIR",
    "MISE_CONFIG_DIR",
    "MISE_DATA_DIR",
    "MISE_SHELL",
    "MISE_STATE_DIR",
    "NIX_PROFILES",
    "RBENV_ROOT",
    "RBENV_VERSION",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
];

/// Proxy variables, in either case. They may contain a password, which servers behind the proxy
/// need.
const PROXIES: [&str; 5] = ["all_proxy", "ftp_proxy", "http_proxy", "https_proxy", "no_proxy"];

/// npm reads `npm_config_*` in any case. Its authentication keys (`_auth`, `_authToken`,
/// `_password`, `otp`, and all keys that contain a registry) are not listed.
const NPM: [&str; 20] = [
    "audit",
    "cache",
    "cafile",
    "fund",
    "globalconfig",
    "https_proxy",
    "https-proxy",
    "init_module",
    "loglevel",
    "noproxy",
    "offline",
    "prefer_offline",
    "prefix",
    "progress",
    "proxy",
    "strict_ssl",
    "update_notifier",
    "user_agent",
    "userconfig",
    "yes",
];

/// URLs of package indexes. They are withheld if they contain credentials.
const INDEXES: [&str; 7] = [
    "NPM_CONFIG_REGISTRY",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
    "UV_INDEX_URL",
];

pub(super) fn is_basic(name: &str) -> bool {
    BASIC.contains(&name)
}

pub(super) fn is_allowed(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    LISTED.contains(&name)
        || name.starts_with("LC_")
        || name.starts_with("XDG_")
        || PROXIES.contains(&lower.as_str())
        || lower.strip_prefix("npm_config_").is_some_and(|key| NPM.contains(&key))
}

pub(super) fn is_package_index(name: &str) -> bool {
    INDEXES.contains(&name.to_ascii_uppercase().as_str())
}

/// Returns whether a URL, or one of several, contains a user, a password or a query.
pub(super) fn has_credentials(value: &str) -> bool {
    value.contains(['@', '?'])
}
