//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-DV-A9Wyj.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-DV-A9Wyj.js"), gzip: include_bytes!("../../assets/assets/CallRow-DV-A9Wyj.js.gz") },
    File { path: "/assets/CallsView-UAQHuoWu.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-UAQHuoWu.js"), gzip: include_bytes!("../../assets/assets/CallsView-UAQHuoWu.js.gz") },
    File { path: "/assets/ProgramsView-DISz7JPg.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-DISz7JPg.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-DISz7JPg.js.gz") },
    File { path: "/assets/PromptsView-DPkKw20G.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-DPkKw20G.js"), gzip: include_bytes!("../../assets/assets/PromptsView-DPkKw20G.js.gz") },
    File { path: "/assets/ResourcesView-D9QqLrxJ.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-D9QqLrxJ.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-D9QqLrxJ.js.gz") },
    File { path: "/assets/ServersView-_3iGZFST.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-_3iGZFST.js"), gzip: include_bytes!("../../assets/assets/ServersView-_3iGZFST.js.gz") },
    File { path: "/assets/index-BpnYPT0H.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-BpnYPT0H.js"), gzip: include_bytes!("../../assets/assets/index-BpnYPT0H.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
