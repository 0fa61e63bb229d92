//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-1gNYw4Yh.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-1gNYw4Yh.js"), gzip: include_bytes!("../../assets/assets/CallRow-1gNYw4Yh.js.gz") },
    File { path: "/assets/CallsView-ddMIk0nG.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-ddMIk0nG.js"), gzip: include_bytes!("../../assets/assets/CallsView-ddMIk0nG.js.gz") },
    File { path: "/assets/ProgramsView-D1caOmMV.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-D1caOmMV.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-D1caOmMV.js.gz") },
    File { path: "/assets/PromptsView-DxyQWzgv.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-DxyQWzgv.js"), gzip: include_bytes!("../../assets/assets/PromptsView-DxyQWzgv.js.gz") },
    File { path: "/assets/ResourcesView-BmcHUMCX.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-BmcHUMCX.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-BmcHUMCX.js.gz") },
    File { path: "/assets/ServersView-CWqqMRzK.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-CWqqMRzK.js"), gzip: include_bytes!("../../assets/assets/ServersView-CWqqMRzK.js.gz") },
    File { path: "/assets/index-BS2plaaj.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-BS2plaaj.js"), gzip: include_bytes!("../../assets/assets/index-BS2plaaj.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
