package docs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
	"github.com/karpenter-go/karpenter/internal/testing/scratch"
)

// desk is an environment for running commands: an empty folder with the needed parts of a clone, the programs of bin on
// the PATH, kubectl after them, and a cache of its own, so that nothing is left behind.
type desk struct {
	t      testing.TB
	folder string
	env    []string
}

// patience is the timeout for one block on a loaded machine.
const patience = 10 * time.Minute

var built struct {
	once   sync.Once
	folder *scratch.Folder
	err    error
}

// programs builds the binaries once and returns their folder.
func programs(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.folder, built.err = scratch.New("karpenter-docs-"); built.err != nil {
			return
		}
		for _, program := range []struct{ name, module, pkg string }{
			{"karpenter", ".", "./cmd/karpenter"}, {"kubectl-karpenter", ".", "./plugin/kubectl-karpenter"}, {"karpenter-sandbox", "sandbox", "."},
		} {
			build := exec.Command("go", "build", "-o", filepath.Join(built.folder.Path, program.name), program.pkg)
			build.Dir = filepath.Join(root, program.module)
			if output, err := build.CombinedOutput(); err != nil {
				built.err = fmt.Errorf("%s: %w\n%s", program.name, err, output)
				return
			}
		}
	})
	if built.err != nil {
		t.Fatalf("building the programs: %v", built.err)
	}
	return built.folder.Path
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if built.folder != nil {
		_ = built.folder.Remove()
	}
	os.Exit(code)
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	folder := t.TempDir()
	bin := filepath.Join(folder, "bin")
	if err := os.Symlink(programs(t), bin); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"api", "charts", "docs", "deploy"} {
		there, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(there, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	assets := sandboxtest.Assets(t)
	// Other ports than the default ones, which another program on this machine may use.
	env := append(os.Environ(), "PATH="+bin+":"+assets+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+filepath.Join(folder, "cache"),
		"METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "KUBECONFIG="+filepath.Join(folder, "my.kubeconfig"))
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		env = append(env, "KARPENTER_SANDBOX_CACHE="+filepath.Dir(assets)) // the control plane is already built
	}
	return &desk{t: t, folder: folder, env: env}
}

// try runs a block: every command must succeed. Background processes end with the test.
func (d *desk) try(name, text string) {
	d.t.Helper()
	log, err := os.Create(filepath.Join(d.t.TempDir(), "output"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	// A non-interactive shell expands aliases only with this option.
	shell := exec.Command("bash", "-euo", "pipefail", "-c", "shopt -s expand_aliases\n"+text)
	shell.Dir, shell.Env, shell.Stdout, shell.Stderr = d.folder, d.env, log, log
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		d.t.Fatal(err)
	}
	group := -shell.Process.Pid
	d.t.Cleanup(func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	late := time.AfterFunc(patience, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	err = shell.Wait()
	if !late.Stop() {
		err = fmt.Errorf("it took more than %v", patience)
	}
	if err != nil {
		output, _ := os.ReadFile(log.Name())
		d.t.Fatalf("%s: %v\n%s\nprinted\n%s%s", name, err, text, output, d.behind())
	}
}

// behind returns the last log lines of the controller that a page started.
func (d *desk) behind() string {
	log, err := os.ReadFile(filepath.Join(d.folder, "controller.log"))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return "\nand the controller's log ends\n" + strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// TestShell runs the blocks that need no cluster, page by page in order.
func TestShell(t *testing.T) {
	all := marked(t, "run: shell")
	if len(all) < 2 {
		t.Errorf("only %d blocks are run here", len(all))
	}
	d := newDesk(t)
	for _, b := range all {
		d.try(b.String(), b.text)
	}
}

// TestCluster runs docs/sandbox.md, which starts a control plane and a controller, and then the blocks of other pages
// that use such a cluster.
func TestCluster(t *testing.T) {
	first, then := marked(t, "run: sandbox"), marked(t, "run: cluster")
	if len(first) < 2 || len(then) < 5 {
		t.Errorf("%d blocks start a cluster, and %d use it", len(first), len(then))
	}
	d := newDesk(t)
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(d.folder, "bin", "karpenter-sandbox"), "down")
		down.Dir, down.Env = d.folder, d.env
		if output, err := down.CombinedOutput(); err != nil {
			t.Errorf("stopping the sandbox: %v\n%s", err, output)
		}
	})
	for _, b := range first {
		if b.page != "docs/sandbox.md" {
			t.Errorf("%v: only docs/sandbox.md starts clusters; want run: cluster", b)
			continue
		}
		d.try(b.String(), b.text)
	}
	for _, b := range then {
		d.try(b.String(), b.text)
	}
}
