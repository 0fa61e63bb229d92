// The entry point of the page.

import { createApp } from "vue";
import App from "./App.vue";
import { follow } from "./address";
import "./style/tokens.css";
import "./style/base.css";
import "./style/layout.css";
import "./style/parts.css";
import { dress } from "./theme";
import { connect, reconnect } from "./yard/yard";

dress();
let begun = false;
follow(() => begun && reconnect());
begun = true;
connect();
createApp(App).mount("#page");
