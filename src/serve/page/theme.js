// Light, dark, or as the system has it. Shared with the planner's page.
const kThemes = ['system', 'light', 'dark'];

/** Shows `theme` and lets `node` change it; `save` is told. */
export function connect_theme(node, theme = 'system', save = () => {}) {
  const show = () => {
    document.documentElement.dataset.theme = theme;
    node.textContent = {system: 'Theme', light: 'Light', dark: 'Dark'}[theme];
  };
  node.onclick = () => {
    theme = kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length];
    save(theme);
    show();
  };
  show();
}
