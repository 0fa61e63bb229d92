//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-Bw-A-Glo.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-Bw-A-Glo.js"), gzip: include_bytes!("../../assets/assets/CallRow-Bw-A-Glo.js.gz") },
    File { path: "/assets/CallsView-xyDAQZrw.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-xyDAQZrw.js"), gzip: include_bytes!("../../assets/assets/CallsView-xyDAQZrw.js.gz") },
    File { path: "/assets/ProgramsView-CGVE2wpO.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-CGVE2wpO.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-CGVE2wpO.js.gz") },
    File { path: "/assets/PromptsView-Dcj44hbO.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-Dcj44hbO.js"), gzip: include_bytes!("../../assets/assets/PromptsView-Dcj44hbO.js.gz") },
    File { path: "/assets/ResourcesView-xzDdbT37.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-xzDdbT37.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-xzDdbT37.js.gz") },
    File { path: "/assets/ServersView-DKSHRK6V.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-DKSHRK6V.js"), gzip: include_bytes!("../../assets/assets/ServersView-DKSHRK6V.js.gz") },
    File { path: "/assets/index-CeOzkQNg.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-CeOzkQNg.css"), gzip: include_bytes!("../../assets/assets/index-CeOzkQNg.css.gz") },
    File { path: "/assets/index-DFCG3_Ma.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-DFCG3_Ma.js"), gzip: include_bytes!("../../assets/assets/index-DFCG3_Ma.js.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
