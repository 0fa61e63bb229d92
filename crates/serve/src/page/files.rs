//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-BEGsqwyx.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-BEGsqwyx.js"), gzip: include_bytes!("../../assets/assets/CallRow-BEGsqwyx.js.gz") },
    File { path: "/assets/CallsView-BbBlr71E.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-BbBlr71E.js"), gzip: include_bytes!("../../assets/assets/CallsView-BbBlr71E.js.gz") },
    File { path: "/assets/ProgramsView-I_sJcjSl.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-I_sJcjSl.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-I_sJcjSl.js.gz") },
    File { path: "/assets/PromptsView-ybS9CKSn.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-ybS9CKSn.js"), gzip: include_bytes!("../../assets/assets/PromptsView-ybS9CKSn.js.gz") },
    File { path: "/assets/ResourcesView-DTvC7s3S.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-DTvC7s3S.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-DTvC7s3S.js.gz") },
    File { path: "/assets/ServersView-IGZXF1eC.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-IGZXF1eC.js"), gzip: include_bytes!("../../assets/assets/ServersView-IGZXF1eC.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/index-dJiFiBsa.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-dJiFiBsa.js"), gzip: include_bytes!("../../assets/assets/index-dJiFiBsa.js.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
