package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestMain runs the plugin, or a stand-in for GitHub's program, if this executable was started by a step of a page.
func TestMain(m *testing.M) {
	switch os.Getenv("KARPENTER_TEST_PROGRAM") {
	case "kubectl-karpenter":
		main()
	case "gh":
		if err := gh(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "gh:", err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// gh does what the steps ask of GitHub's program, on the server of the test.
func gh(arguments []string) error {
	values, rest := map[string]string{}, []string{}
	for i := 0; i < len(arguments); i++ {
		switch a := arguments[i]; {
		case a == "--paginate" || a == "--silent":
		case strings.HasPrefix(a, "-"):
			values[a] = arguments[i+1]
			i++
		default:
			rest = append(rest, a)
		}
	}
	switch what := strings.Join(rest[:min(2, len(rest))], " "); {
	case what == "run list":
		if values["--branch"] == os.Getenv("TEST_BRANCH") && values["--workflow"] == "karpenter-fleet.yml" {
			fmt.Println(os.Getenv("TEST_RUN"))
		}
		return nil
	case what == "run download" && rest[2] == os.Getenv("TEST_RUN") && values["--name"] == "fleet":
		text, err := os.ReadFile(os.Getenv("TEST_FLEET"))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(values["--dir"], "fleet.json"), text, 0o600)
	case rest[0] != "api":
		return fmt.Errorf("unknown command %q", arguments)
	}
	var body io.Reader
	if file, has := strings.CutPrefix(values["-F"], "body=@"); has {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		document, err := json.Marshal(map[string]string{"body": string(text)})
		if err != nil {
			return err
		}
		body = bytes.NewReader(document)
	}
	request, err := http.NewRequest(values["--method"], os.Getenv("TEST_API")+"/"+rest[1], body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("GH_TOKEN"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s", values["--method"], rest[1], answer.Status)
	}
	if values["--jq"] == "" {
		return nil
	}
	jq := exec.Command("jq", "-r", values["--jq"])
	jq.Stdin, jq.Stdout, jq.Stderr = answer.Body, os.Stdout, os.Stderr
	return jq.Run()
}

// reviewComment is a comment on a pull request, in the fields of either forge.
type reviewComment struct {
	ID     int               `json:"id"`
	Body   string            `json:"body"`
	User   map[string]string `json:"user"`
	Author map[string]string `json:"author"`
}

// forge serves the comments of one pull request as GitHub and as GitLab do, and the artifact of GitLab.
type forge struct {
	t        *testing.T
	me       string
	comments []reviewComment
	fleet    string
	calls    []string
}

// newForge has a comment of the same program about another cluster, one of another user that begins with the same
// hidden line, and a plain one.
func newForge(t *testing.T, me, fleet string) *forge {
	f := &forge{t: t, me: me, fleet: fleet}
	f.add("someone", "please explain")
	f.add("octocat", defaultMark+"a comment that looks like one of ours")
	f.add(me, "<!-- kubectl-karpenter simulate --diff other -->\nanother cluster")
	return f
}

func (f *forge) add(user, body string) {
	name := map[string]string{"login": user, "username": user}
	f.comments = append(f.comments, reviewComment{ID: 100 + len(f.comments), Body: body, User: name, Author: name})
}

var commentPath = regexp.MustCompile(`^/(?:repos/shop/infra/issues(?:/12)?/comments|projects/7/merge_requests/12/notes)(?:/(\d+))?$`)

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	match := commentPath.FindStringSubmatch(r.URL.Path)
	token := r.Header.Get("PRIVATE-TOKEN") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.URL.Path == "/projects/7/jobs/artifacts/main/raw/fleet.json" && r.Header.Get("JOB-TOKEN") == "of-job" &&
		r.URL.Query().Get("job") == "karpenter-fleet":
		http.ServeFile(w, r, f.fleet)
	case token != "may-comment":
		http.Error(w, "no", http.StatusUnauthorized)
	case r.URL.Path == "/user":
		fmt.Fprintf(w, `{"username": %q}`, f.me)
	case match == nil:
		http.NotFound(w, r)
	case r.Method == http.MethodGet:
		f.list(w, r)
	default:
		f.calls = append(f.calls, r.Method)
		f.write(w, r, match[1])
	}
}

// list answers GitHub's request with all comments, and GitLab's with one a page.
func (f *forge) list(w http.ResponseWriter, r *http.Request) {
	list := f.comments
	if page, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil {
		next := ""
		if page < len(f.comments) {
			next = strconv.Itoa(page + 1)
		}
		w.Header().Set("X-Next-Page", next)
		list = list[page-1 : page]
	}
	if err := json.NewEncoder(w).Encode(list); err != nil {
		f.t.Error(err)
	}
}

func (f *forge) write(w http.ResponseWriter, r *http.Request, id string) {
	var given struct{ Body string }
	if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		given.Body = r.FormValue("body")
	} else if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		f.t.Error(err)
	}
	if id == "" {
		f.add(f.me, given.Body)
		w.WriteHeader(http.StatusCreated)
		return
	}
	at := slices.IndexFunc(f.comments, func(c reviewComment) bool { return strconv.Itoa(c.ID) == id })
	if at < 0 {
		http.NotFound(w, r)
		return
	}
	f.comments[at].Body = given.Body
}

// pageBlocks returns the blocks of docs/pull-requests.md that this test runs.
func pageBlocks(t *testing.T) (yamls, shells []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/pull-requests.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)<!-- run by: TestPullRequestPage -->\n```(yaml|sh)\n(.*?)```").FindAllStringSubmatch(
		string(text), -1) {
		if m[1] == "yaml" {
			yamls = append(yamls, m[2])
		} else {
			shells = append(shells, m[2])
		}
	}
	if len(yamls) != 3 || len(shells) != 1 {
		t.Fatalf("%d and %d blocks, want 3 of YAML and 1 of shell", len(yamls), len(shells))
	}
	return yamls, shells
}

// workflow is the part of a workflow of GitHub that a shell runs.
type workflow struct {
	Env  map[string]string `json:"env"`
	Jobs map[string]struct {
		Steps []struct {
			Name string            `json:"name"`
			Run  string            `json:"run"`
			Env  map[string]string `json:"env"`
		} `json:"steps"`
	} `json:"jobs"`
}

// runner runs shell steps in a folder, with the programs of the test on the PATH.
type runner struct {
	t      *testing.T
	shell  []string
	folder string
	env    map[string]string
}

// newRunner makes a folder of programs: the plugin, gh, and go and apk, which install nothing.
func newRunner(t *testing.T, shell []string, env map[string]string) *runner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, script := range map[string]string{"go": "exit 0", "apk": "exit 0",
		"gh":                "KARPENTER_TEST_PROGRAM=gh exec '" + self + "' \"$@\"",
		"kubectl-karpenter": "KARPENTER_TEST_PROGRAM=kubectl-karpenter exec '" + self + "' \"$@\""} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := &runner{t: t, shell: shell, folder: t.TempDir(), env: map[string]string{"PATH": bin + ":" + os.Getenv("PATH"), "HOME": t.TempDir()}}
	for name, value := range env {
		r.env[name] = value
	}
	return r
}

// run runs a script, and returns what it prints and its exit code.
func (r *runner) run(script string) (string, int) {
	r.t.Helper()
	command := exec.Command(r.shell[0], append(slices.Clone(r.shell[1:]), "-e", "-c", script)...)
	command.Dir = r.folder
	for name, value := range r.env {
		command.Env = append(command.Env, name+"="+value)
	}
	output, err := command.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		r.t.Fatal(err)
	}
	return string(output), command.ProcessState.ExitCode()
}

// must runs a script that succeeds.
func (r *runner) must(script string) {
	r.t.Helper()
	if output, code := r.run(script); code != 0 {
		r.t.Fatalf("%s: exit code %d\n%s", script, code, output)
	}
}

// steps runs the steps of a job of GitHub until one fails, and returns the output and the exit code of the last one.
// The values of expressions are given.
func (r *runner) steps(w *workflow, job string, expressions map[string]string) (string, int) {
	r.t.Helper()
	value := func(text string) string {
		return regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`).ReplaceAllStringFunc(text, func(e string) string {
			is, known := expressions[strings.TrimSpace(strings.Trim(e, "${}"))]
			if !known {
				r.t.Fatalf("the expression %s has no value in this test", e)
			}
			return is
		})
	}
	for name, text := range w.Env {
		r.env[name] = value(text)
	}
	output, code := "", 0
	for _, step := range w.Jobs[job].Steps {
		if step.Run == "" {
			continue
		}
		for name, text := range step.Env {
			r.env[name] = value(text)
		}
		if output, code = r.run(step.Run); code != 0 {
			return output, code
		}
		for name := range step.Env {
			delete(r.env, name)
		}
		text, err := os.ReadFile(r.env["GITHUB_ENV"])
		if err != nil {
			r.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			r.env[name] = value
		}
	}
	return output, code
}

// repository makes a clone with a merge of a branch that changes the NodePool.
func (r *runner) repository(old, now string) {
	r.t.Helper()
	r.must("rm -rf -- * .git && mkdir karpenter && git init -q -b main . && git config user.email a@b && git config user.name a")
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(r.folder, "karpenter", "pool.yaml"), []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	write(old)
	r.must("git add . && git commit -q -m old && git checkout -q -b change")
	write(now)
	r.must("git add . && git commit -q -m new && git checkout -q main && git merge -q --no-ff -m merge change")
}

// pullRequestShells are the shells of runners that are here: those of GitHub are bash, of GitLab's images often
// busybox.
func pullRequestShells(t *testing.T) [][]string {
	t.Helper()
	for _, program := range []string{"git", "jq", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the steps of the page need %s: %v", program, err)
		}
	}
	var shells [][]string
	for _, shell := range [][]string{{"bash"}, {"busybox", "sh"}, {"dash"}} {
		if path, err := exec.LookPath(shell[0]); err == nil && len(shells) < 2 { // dash in the place of busybox
			shells = append(shells, append([]string{path}, shell[1:]...))
		}
	}
	if len(shells) == 0 {
		t.Skip("there is neither bash nor busybox nor dash")
	}
	return shells
}

// changedPools are an old pool, one that costs more than 5% more, and one that changes nothing.
func changedPools() (old, dear, same string) {
	return upstreamPool, strings.Replace(upstreamPool, "values: [amd64]", "values: [amd64, arm64]", 1),
		strings.Replace(upstreamPool, "values: [amd64]", "values: [amd64, amd64]", 1)
}

// TestPullRequestPage runs the steps of docs/pull-requests.md: the capture of a cluster, the comparison on it, the
// comment, which the second push updates, and the exit code.
func TestPullRequestPage(t *testing.T) {
	yamls, shells := pageBlocks(t)
	var fleet, review workflow
	for i, w := range []*workflow{&fleet, &review} {
		if err := yaml.Unmarshal([]byte(yamls[i]), w); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(yamls[1], "secrets.") || strings.Contains(yamls[1], "pull_request_target:") {
		t.Error("the workflow of the pull request has secrets")
	}
	for _, shell := range pullRequestShells(t) {
		t.Run("GitHub, "+filepath.Base(shell[0]), func(t *testing.T) { onGitHub(t, shell, &fleet, &review) })
		t.Run("GitLab, "+filepath.Base(shell[0]), func(t *testing.T) { onGitLab(t, shell, yamls[2], shells[0]) })
	}
}

func onGitHub(t *testing.T, shell []string, fleet, review *workflow) {
	old, dear, same := changedPools()
	kubeconfig, err := os.ReadFile(upstreamCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	r := newRunner(t, shell, map[string]string{"TEST_RUN": "4711", "TEST_BRANCH": "main", "RUNNER_TEMP": temporary,
		"GITHUB_ENV": filepath.Join(temporary, "env"), "GITHUB_STEP_SUMMARY": filepath.Join(temporary, "summary")})
	if err := os.WriteFile(r.env["GITHUB_ENV"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, code := r.steps(fleet, "capture", map[string]string{"secrets.KARPENTER_KUBECONFIG": string(kubeconfig)}); code != 0 {
		t.Fatalf("capture: exit code %d\n%s", code, output)
	}
	captured := filepath.Join(t.TempDir(), "fleet.json")
	if err := os.Rename(filepath.Join(r.folder, "fleet.json"), captured); err != nil {
		t.Fatal(err)
	}
	f := newForge(t, "github-actions[bot]", captured)
	server := httptest.NewServer(f)
	defer server.Close()
	r.env["TEST_FLEET"], r.env["TEST_API"] = captured, server.URL
	push := func(now, same string) (string, int) {
		r.must("rm -rf '" + temporary + "/old'")
		r.repository(old, now)
		return r.steps(review, "review", map[string]string{"github.token": "may-comment", "github.repository": "shop/infra",
			"github.base_ref": "release", "github.event.repository.default_branch": "main", "github.event.number": "12",
			"github.event.pull_request.head.repo.full_name == github.repository": same})
	}
	commented(t, f, dear, same, func(now string) (string, int) { return push(now, "true") })
	if output, code := push(dear, "false"); code != 1 || len(f.calls) != 2 || strings.Contains(output, "Unauthorized") {
		t.Errorf("of a fork: exit code %d, calls %v\n%s", code, f.calls, output)
	}
	if text, err := os.ReadFile(r.env["GITHUB_STEP_SUMMARY"]); err != nil || strings.Count(string(text), defaultMark) != 3 {
		t.Errorf("the summary: %v\n%s", err, text)
	}
	if output, code := push("kind: Nonsense\n", "true"); code != 2 || !strings.Contains(output, "apiVersion") || len(f.calls) != 2 {
		t.Errorf("of a file that cannot be read: exit code %d, calls %v\n%s", code, f.calls, output)
	}
	r.env["TEST_RUN"] = ""
	if output, code := push(dear, "true"); code != 1 || !strings.Contains(output, "run the workflow karpenter-fleet first") {
		t.Errorf("without a capture: exit code %d\n%s", code, output)
	}
}

// commented pushes two changes, and checks that the first makes a comment and fails, and the second updates it.
func commented(t *testing.T, f *forge, dear, same string, push func(now string) (string, int)) {
	t.Helper()
	others := slices.Clone(f.comments)
	if output, code := push(dear); code != 1 {
		t.Fatalf("of a change that is not allowed: exit code %d\n%s", code, output)
	}
	if n := len(f.comments); n != len(others)+1 || !slices.Equal(f.calls, []string{"POST"}) {
		t.Fatalf("%d comments, by %v", n, f.calls)
	}
	ours := &f.comments[len(others)]
	if !strings.HasPrefix(ours.Body, defaultMark+"**NodePool default: spec.template.spec.requirements") ||
		!strings.Contains(ours.Body, "**Not allowed: --max-increase 5%: costs 135.78 USD a month more at rest, 22.9% of 594.22**") {
		t.Errorf("the comment:\n%s", ours.Body)
	}
	if output, code := push(same); code != 0 {
		t.Fatalf("of a change that is allowed: exit code %d\n%s", code, output)
	}
	if !strings.HasPrefix(f.comments[len(others)].Body, defaultMark+"**Nothing changes: ") {
		t.Errorf("the comment after the second push:\n%s", f.comments[len(others)].Body)
	}
	if len(f.calls) != 2 || f.calls[1] == "POST" || len(f.comments) != len(others)+1 {
		t.Errorf("%d comments, by %v", len(f.comments), f.calls)
	}
	for i := range others {
		if f.comments[i].Body != others[i].Body {
			t.Errorf("the comment of %v was changed to %s", others[i].User, f.comments[i].Body)
		}
	}
}

func onGitLab(t *testing.T, shell []string, pipeline, rules string) {
	var jobs map[string]struct {
		BeforeScript []string `json:"before_script"`
		Script       []string `json:"script"`
	}
	if err := yaml.Unmarshal([]byte(pipeline), &jobs); err != nil {
		t.Fatal(err)
	}
	script := func(job string) string {
		return strings.Join(slices.Concat(jobs[".karpenter"].BeforeScript, jobs[job].Script), "\n")
	}
	old, dear, same := changedPools()
	r := newRunner(t, shell, map[string]string{"CI_PROJECT_ID": "7", "CI_JOB_TOKEN": "of-job", "CI_DEFAULT_BRANCH": "main",
		"CI_MERGE_REQUEST_IID": "12", "KARPENTER_COMMENT_TOKEN": "may-comment", "KARPENTER_KUBECONFIG": upstreamCluster(t)})
	r.must(script("karpenter-fleet"))
	captured := filepath.Join(t.TempDir(), "fleet.json")
	if err := os.Rename(filepath.Join(r.folder, "fleet.json"), captured); err != nil {
		t.Fatal(err)
	}
	delete(r.env, "KARPENTER_KUBECONFIG")
	f := newForge(t, "project_7_bot", captured)
	server := httptest.NewServer(f)
	defer server.Close()
	r.env["CI_API_V4_URL"] = server.URL
	push := func(now string) (string, int) {
		r.repository(old, now)
		base, _ := r.run("git rev-parse HEAD^1")
		r.env["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = strings.TrimSpace(base)
		return r.run(script("karpenter-review"))
	}
	commented(t, f, dear, same, push)
	if output, code := r.run(rules); code != 0 {
		t.Errorf("rules of your own: exit code %d\n%s", code, output)
	}
	r.env["KARPENTER_COMMENT_TOKEN"] = "expired"
	if output, code := push(same); code == 0 {
		t.Errorf("with a token that has expired: exit code %d\n%s", code, output)
	}
}
