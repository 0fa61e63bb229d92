// The light or dark theme: that of the system, unless the user chose one.

import { ref } from "vue";

export type Theme = "auto" | "light" | "dark";
const KEY = "toolyard.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function kept(): Theme {
  const text = localStorage.getItem(KEY);
  return text === "light" || text === "dark" ? text : "auto";
}

export const theme = ref<Theme>(kept());

/** Applies the theme, and follows the system while the theme is `auto`. */
export function dress(): void {
  const put = () => {
    const dark = theme.value === "dark" || (theme.value === "auto" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  };
  system.addEventListener("change", put);
  addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    theme.value = kept();
    put();
  });
  put();
}

export function choose(next: Theme): void {
  theme.value = next;
  localStorage.setItem(KEY, next);
  const dark = next === "dark" || (next === "auto" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
