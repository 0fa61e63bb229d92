//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-M9aoaviZ.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-M9aoaviZ.js"), gzip: include_bytes!("../../assets/assets/CallRow-M9aoaviZ.js.gz") },
    File { path: "/assets/CallsView-Cg7QJrqx.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-Cg7QJrqx.js"), gzip: include_bytes!("../../assets/assets/CallsView-Cg7QJrqx.js.gz") },
    File { path: "/assets/ProgramsView-CQ3lNM2R.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-CQ3lNM2R.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-CQ3lNM2R.js.gz") },
    File { path: "/assets/PromptsView-BFdy74N1.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-BFdy74N1.js"), gzip: include_bytes!("../../assets/assets/PromptsView-BFdy74N1.js.gz") },
    File { path: "/assets/ResourcesView-DaTpRI2P.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-DaTpRI2P.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-DaTpRI2P.js.gz") },
    File { path: "/assets/ServersView-KfqhFxFh.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-KfqhFxFh.js"), gzip: include_bytes!("../../assets/assets/ServersView-KfqhFxFh.js.gz") },
    File { path: "/assets/index-Cunz7XO-.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-Cunz7XO-.js"), gzip: include_bytes!("../../assets/assets/index-Cunz7XO-.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
