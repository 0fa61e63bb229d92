//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-M-DS3Tyt.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-M-DS3Tyt.js"), gzip: include_bytes!("../../assets/assets/CallRow-M-DS3Tyt.js.gz") },
    File { path: "/assets/CallsView-DFqhytoJ.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-DFqhytoJ.js"), gzip: include_bytes!("../../assets/assets/CallsView-DFqhytoJ.js.gz") },
    File { path: "/assets/ProgramsView-BbCnGO3H.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-BbCnGO3H.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-BbCnGO3H.js.gz") },
    File { path: "/assets/PromptsView-CVvakiue.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-CVvakiue.js"), gzip: include_bytes!("../../assets/assets/PromptsView-CVvakiue.js.gz") },
    File { path: "/assets/ResourcesView-BlSIY9RW.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-BlSIY9RW.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-BlSIY9RW.js.gz") },
    File { path: "/assets/ServersView-CVaxg1vf.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-CVaxg1vf.js"), gzip: include_bytes!("../../assets/assets/ServersView-CVaxg1vf.js.gz") },
    File { path: "/assets/index-C8G82khU.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-C8G82khU.js"), gzip: include_bytes!("../../assets/assets/index-C8G82khU.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
