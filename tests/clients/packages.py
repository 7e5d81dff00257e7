#!/usr/bin/env python3
"""The clients that the server is tested with. Run it to install them into ~/.cache/sluice-clients;
what is there already stays.
"""

import dataclasses
from pathlib import Path
import shutil
import subprocess
import sys
import venv

NODE_MAJOR = 20


@dataclasses.dataclass(frozen=True)
class Packages:
    name: str
    versions: tuple
    uses_node: bool = True

    @property
    def folder(self):
        return Path.home() / ".cache/sluice-clients" / self.name

    @property
    def mark(self):
        """A file that says which versions are there."""
        return self.folder / "installed.txt"

    def lacking(self):
        """Why they cannot be used; empty: they can."""
        if self.uses_node and (reason := lacking_node()):
            return reason
        if self.mark.exists() and tuple(self.mark.read_text().split()) == self.versions:
            return ""
        return f"{' '.join(self.versions)} not installed (make test-clients does)"

    def install(self):
        print(f"installing {' '.join(self.versions)}", flush=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.uses_node:
            command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        else:
            venv.create(self.folder, with_pip=True)
            command = [self.folder / "bin/pip", "install", "--quiet"]
        subprocess.run([*command, *self.versions], cwd=self.folder, check=True)
        self.mark.write_text("\n".join(self.versions) + "\n")


SDKS_PYTHON = Packages("python", ("openai==3.57.0", "anthropic==2.14.0"), uses_node=False)
SDKS_NODE = Packages("node", ("openai@7.59.0", "ai@7.0.173", "@ai-sdk/openai@4.0.118",
                              "@ai-sdk/openai-compatible@3.0.92", "zod@4.6.7"))
CODEX = Packages("codex", ("@openai/codex@0.171.0",))


def lacking_node():
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are not installed"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    if int(version.strip().lstrip("v").split(".")[0]) < NODE_MAJOR:
        return f"expected Node {NODE_MAJOR} or newer, got {version.strip()}"
    return ""


def main():
    """True unless all could be installed."""
    failed = False
    for packages in (SDKS_PYTHON, SDKS_NODE, CODEX):
        if not packages.lacking():
            continue
        try:
            if packages.uses_node and (reason := lacking_node()):
                raise OSError(reason)
            packages.install()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{packages.name}: {error}", file=sys.stderr)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
