package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// requirement matches a module that a go.mod requires itself, with the comment behind it.
var requirement = regexp.MustCompile(`(?m)^\t([^\s/]+(?:/\S+)?) (v\S+)(?: // (.*))?$`)

// required returns the versions of the modules that a go.mod requires for packages that are
// imported here.
func required(t *testing.T, file string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range requirement.FindAllStringSubmatch(readFile(t, file), -1) {
		if m[3] != "indirect" {
			out[m[1]] = m[2]
		}
	}
	if len(out) < 20 {
		t.Fatalf("%s requires only %v", file, out)
	}
	return out
}

const caddyModule = "github.com/caddyserver/caddy/v2"

// TestOldestCaddy checks that the pages name the version of Caddy that go.mod requires.
func TestOldestCaddy(t *testing.T) {
	oldest := required(t, "go.mod")[caddyModule]
	if !strings.HasSuffix(oldest, ".0") {
		t.Errorf("go.mod requires Caddy %s, which is not the first of a minor version", oldest)
	}
	for _, page := range []string{"README.md", "docs/modules.md", "docs/install.md"} {
		named := regexp.MustCompile(`\bv2\.\d+\.\d+\b`).FindAllString(readFile(t, page), -1)
		if len(named) != 1 || named[0] != oldest {
			t.Errorf("%s names the Caddys %v, go.mod %s", page, named, oldest)
		}
	}
}

// TestNewestVersions checks that newest.mod requires what go.mod does, and nothing older.
func TestNewestVersions(t *testing.T) {
	oldest, newest := required(t, "go.mod"), required(t, "newest.mod")
	for module, version := range oldest {
		switch v, ok := newest[module]; {
		case !ok:
			t.Errorf("newest.mod lacks %s; run: go mod tidy -modfile newest.mod", module)
		case older(v, version):
			t.Errorf("newest.mod has %s %s, and go.mod %s", module, v, version)
		}
		delete(newest, module)
	}
	for module := range newest {
		t.Errorf("go.mod lacks %s", module)
	}
}

// older reports whether a version is before another one. Of pseudo-versions, it compares the first
// three numbers and the time.
func older(a, b string) bool {
	numbers := regexp.MustCompile(`\d+`)
	of, than := numbers.FindAllString(a, 4), numbers.FindAllString(b, 4)
	for i := range min(len(of), len(than)) {
		x, _ := strconv.Atoi(of[i])
		y, _ := strconv.Atoi(than[i])
		if x != y {
			return x < y
		}
	}
	return false
}

// TestModulesOfTests checks that go.mod requires no module that only tests need: whoever imports
// this module would need it, too.
func TestModulesOfTests(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for module := range strings.Lines(string(out)) {
		needed[strings.TrimSpace(module)] = true
	}
	for module := range required(t, "go.mod") {
		if !needed[module] {
			t.Errorf("only tests need %s: move them into test/integration, or do without it", module)
		}
	}
}

// TestPseudoVersions checks that go.mod says why it has a version without a tag.
func TestPseudoVersions(t *testing.T) {
	pseudo := regexp.MustCompile(`-(0\.)?\d{14}-[0-9a-f]{12}$`)
	for _, file := range []string{"go.mod", "newest.mod"} {
		for _, m := range requirement.FindAllStringSubmatch(readFile(t, file), -1) {
			if m[3] == "" && pseudo.MatchString(m[2]) {
				t.Errorf("%s: %s %s has no comment with the reason", file, m[1], m[2])
			}
		}
	}
}

// workflow is what the tests read of a workflow.
type workflow struct {
	On   any `yaml:"on"`
	Jobs map[string]struct {
		Uses  string `yaml:"uses"`
		Needs any    `yaml:"needs"`
		Steps []struct {
			Uses string         `yaml:"uses"`
			Run  string         `yaml:"run"`
			With map[string]any `yaml:"with"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// TestPinned checks that workflows name actions by the hash of a commit, with the version as a
// comment, and images by their digest: a tag can be moved.
func TestPinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	if _, err := os.Stat(filepath.Join(root, "action.yml")); err == nil {
		files = append(files, filepath.Join(root, "action.yml"))
	}
	action := regexp.MustCompile(`^(\./\S+|[\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	image := regexp.MustCompile(`^(golang|alpine):[\w.-]+@sha256:[0-9a-f]{64}$`)
	uses, images := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s*(?:- )?(uses|container|image): (.*)$`).FindAllStringSubmatch(string(text), -1) {
			if m[1] == "uses" {
				uses++
				if !action.MatchString(m[2]) {
					t.Errorf("%s: %s is not named by a hash, with its version behind it: @0123…def # v1.2.3", filepath.Base(file), m[2])
				}
			} else if images++; !image.MatchString(m[2]) {
				t.Errorf("%s: %s is not named by a digest", filepath.Base(file), m[2])
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^FROM (?:--\S+ )?(\S+)`).FindAllStringSubmatch(readFile(t, "deploy/Dockerfile"), -1) {
		if images++; !image.MatchString(m[1]) {
			t.Errorf("deploy/Dockerfile: %s is not named by a digest", m[1])
		}
	}
	if uses < 10 || images != 3 {
		t.Errorf("%d actions and %d images are named", uses, images)
	}
}

// TestReleaseIsWhole checks that a release waits for CI, and that nobody sees a part of it: what is
// public is made by the last job, which needs all others.
func TestReleaseIsWhole(t *testing.T) {
	var w workflow
	if err := yaml.Unmarshal([]byte(readFile(t, ".github/workflows/release.yml")), &w); err != nil {
		t.Fatal(err)
	}
	needs := func(job string) string {
		switch n := w.Jobs[job].Needs.(type) {
		case string:
			return n
		case []any:
			var out []string
			for _, x := range n {
				out = append(out, x.(string))
			}
			return strings.Join(out, " ")
		}
		return ""
	}
	if w.Jobs["ci"].Uses != "./.github/workflows/ci.yml" {
		t.Errorf("the job ci is %+v", w.Jobs["ci"])
	}
	for job, want := range map[string]string{"ci": "", "draft": "ci", "image": "ci", "publish": "draft image"} {
		if got := needs(job); got != want {
			t.Errorf("%s needs %q, want %q", job, got, want)
		}
	}
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			public := strings.Contains(s.Run, "--draft=false") || strings.Contains(s.Run, "imagetools create") ||
				strings.Contains(s.Run, "gh release create") && !strings.Contains(s.Run, "--draft") ||
				strings.HasPrefix(s.Uses, "docker/build-push-action@") && s.With["tags"] != nil
			if public && name != "publish" {
				t.Errorf("the job %s makes something public before all is built: %+v", name, s)
			}
		}
	}
	var ci workflow
	if err := yaml.Unmarshal([]byte(readFile(t, ".github/workflows/ci.yml")), &ci); err != nil {
		t.Fatal(err)
	}
	if on, _ := ci.On.(map[string]any); on != nil {
		if _, ok := on["workflow_call"]; !ok {
			t.Error("no other workflow can call ci.yml")
		}
	} else {
		t.Errorf("ci.yml runs on %v", ci.On)
	}
}

// TestBumps checks that dependabot does not raise the versions of go.mod, except for security.
func TestBumps(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directory   string   `yaml:"directory"`
			Directories []string `yaml:"directories"`
			Limit       *int     `yaml:"open-pull-requests-limit"`
		} `yaml:"updates"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, ".github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, u := range config.Updates {
		for _, directory := range append(u.Directories, u.Directory) {
			if u.Ecosystem == "gomod" && directory == "/" {
				found = true
				if u.Limit == nil || *u.Limit != 0 {
					t.Error("routine updates raise what go.mod requires")
				}
			}
		}
	}
	if !found {
		t.Error("dependabot proposes no security updates for go.mod")
	}
}

// TestReleaseNotes checks that a release has notes and a queue that later versions go on with, and
// that the workflow asks for both.
func TestReleaseNotes(t *testing.T) {
	notes := func(version string) (string, error) {
		command := exec.Command("bash", ".ci/notes", version)
		command.Dir = ".."
		out, err := command.CombinedOutput()
		return string(out), err
	}
	for _, version := range []string{"v0.1.0", "v0.1.0-rc.1"} {
		if text, err := notes(version); err != nil || !strings.Contains(text, "The first release.") || strings.Contains(text, "\n## ") {
			t.Errorf("%s: %v: %s", version, err, text)
		}
	}
	if text, err := notes("v0.0.9"); err == nil || !strings.Contains(text, "v0.0.9.tar.gz is missing") {
		t.Errorf("a version that nobody has prepared: %v: %s", err, text)
	}
	if !strings.Contains(readFile(t, ".github/workflows/release.yml"), `bash .ci/notes "$GITHUB_REF_NAME"`) {
		t.Error("the workflow of a release does not ask for its notes")
	}
}
