package sandbox

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// cacheVariable is the environment variable that overrides the folder for builds of the sandbox.
const cacheVariable = "KARPENTER_SANDBOX_CACHE"

// build returns a folder with the source's executable and a link per component. It builds the folder if the cache
// lacks it. The cache key covers all inputs of the executable.
func build(ctx context.Context, from source, progress func(string)) (string, error) {
	key, err := buildKey(ctx, from)
	if err != nil {
		return "", fmt.Errorf("building the sandbox from %s: %w", from.modfile, err)
	}
	folder, err := cached(ctx, key, progress, func(unfinished string) error {
		return compile(ctx, from, whole, unfinished, progress)
	})
	if err != nil {
		return "", fmt.Errorf("building the sandbox from %s: %w", from.modfile, err)
	}
	return folder, nil
}

// cached returns the folder of a key in the cache, which fill makes if the cache lacks it. Concurrent callers wait for each
// other. A killed one leaves nothing that looks finished: fill has a folder of its own, under a lock that the kernel
// releases, which is renamed when complete.
func cached(ctx context.Context, key string, progress func(string), fill func(unfinished string) error) (string, error) {
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	finished := filepath.Join(cache, key)
	if isComplete(finished) {
		return finished, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the sandbox's cache (move it with %s): %w", cacheVariable, err)
	}
	lock, err := waitForLock(ctx, finished+".lock", progress)
	if err != nil {
		return "", fmt.Errorf("waiting for another process that makes %s: %w", finished, err)
	}
	defer lock.Close()
	if isComplete(finished) {
		return finished, nil
	}
	unfinished := finished + ".unfinished"
	for _, leftover := range []string{unfinished, finished} {
		if err := os.RemoveAll(leftover); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(unfinished)
	if err := fill(unfinished); err != nil {
		return "", err
	}
	return finished, os.Rename(unfinished, finished)
}

// isComplete tells whether a folder of the cache has everything.
func isComplete(folder string) bool {
	return len(missingComponents(folder, catalog)) == 0 && isExecutable(filepath.Join(folder, kubectl))
}

func cacheFolder() (string, error) {
	if folder := os.Getenv(cacheVariable); folder != "" {
		return filepath.Abs(folder)
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the sandbox's cache (set it with %s): %w", cacheVariable, err)
	}
	return filepath.Join(folder, "karpenter-go", "sandbox"), nil
}

// linkFlags returns the linker flags that set the versions that the components report. Without them the API server
// reports v0.0.0-master. The versions are read from the module's go.mod.
func linkFlags(gomod string) (string, error) {
	kubernetes, kwokVersion := requirement(gomod, "k8s.io/kubernetes"), requirement(gomod, "sigs.k8s.io/kwok")
	parts := strings.SplitN(strings.TrimPrefix(kubernetes, "v"), ".", 3)
	if len(parts) != 3 || kwokVersion == "" {
		return "", errors.New("go.mod requires no k8s.io/kubernetes or no sigs.k8s.io/kwok")
	}
	const version = " -X k8s.io/component-base/version."
	return "-s -w" + version + "gitVersion=" + kubernetes + version + "gitMajor=" + parts[0] + version + "gitMinor=" + parts[1] +
		" -X sigs.k8s.io/kwok/pkg/consts.Version=" + kwokVersion, nil
}

func requirement(gomod, module string) string {
	for line := range strings.Lines(gomod) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
}

// buildKey hashes the source's files, the toolchain and the flags.
func buildKey(ctx context.Context, from source) (string, error) {
	files, err := filepath.Glob(filepath.Join(from.module, "*.go"))
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	files = append(files, from.modfile, from.sumfile())
	hash := sha256.New()
	for _, file := range files { // Glob returns sorted names
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n", filepath.Base(file), len(content))
		hash.Write(content)
	}
	toolchain := goCommand(ctx, from.module, "env", "GOVERSION", "GOOS", "GOARCH", "CGO_ENABLED")
	output, err := toolchain.Output()
	if err != nil {
		return "", fmt.Errorf("asking go for its version: %w", err)
	}
	hash.Write(output)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// goCommand returns a go command that ignores the user's settings for other modules and ends with this process.
func goCommand(ctx context.Context, module string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = module
	command.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off")
	command.SysProcAttr = childAttributes()
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command
}

// waitForLock locks the file. It calls progress if that takes longer than a moment.
func waitForLock(ctx context.Context, path string, progress func(string)) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	start, reported := time.Now(), time.Now()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, err
		}
		if time.Since(reported) >= 5*time.Second {
			progress(fmt.Sprintf("waiting for another process that prepares the sandbox (%s)", time.Since(start).Round(time.Second)))
			reported = time.Now()
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// recipe is what the module is built into.
type recipe struct {
	file  string   // the executable
	links []string // names of components that it has
	flags []string // of go build, beside those that are always given
	env   []string // of go build
	start string   // what the build says when it begins
	of    int      // packages, about
}

// whole is the control plane in one executable.
var whole = recipe{
	file: multicall, links: append(componentNames(catalog), kubectl), of: 2800,
	start: "building the sandbox's control plane from source; the first time takes " + buildTakes,
}

// buildTakes is how long a first build takes.
const buildTakes = "4 to 10 minutes on 2 cores"

// compile builds a recipe's executable into the folder, and links to it.
func compile(ctx context.Context, from source, r recipe, folder string, progress func(string)) error {
	gomod, err := os.ReadFile(from.modfile)
	if err != nil {
		return err
	}
	versions, err := linkFlags(string(gomod))
	if err != nil {
		return err
	}
	args := append([]string{"build", "-v", "-modfile", from.modfile, "-ldflags", versions, "-o", filepath.Join(folder, r.file)}, r.flags...)
	command := goCommand(ctx, from.module, append(args, ".")...)
	command.Env = append(command.Env, r.env...)
	if err := runBuild(command, r, progress); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	for _, name := range r.links {
		if err := os.Symlink(r.file, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// runBuild runs the build and reports the progress every few seconds.
func runBuild(command *exec.Cmd, r recipe, progress func(string)) error {
	output, err := command.StderrPipe()
	if err != nil {
		return err
	}
	seen := buildProgress{of: r.of}
	start := time.Now()
	progress(r.start)
	if err := command.Start(); err != nil {
		return err
	}
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	read := make(chan []string)
	go func() { read <- seen.read(output) }()
	for {
		select {
		case <-ticker.C:
			progress(fmt.Sprintf("building: %s, %s", time.Since(start).Round(time.Second), seen.text()))
		case complaints := <-read:
			if err := command.Wait(); err != nil {
				return fmt.Errorf("go build: %w: %s", err, strings.Join(complaints, "; "))
			}
			progress(fmt.Sprintf("built %s in %s", r.file, time.Since(start).Round(time.Second)))
			return nil
		}
	}
}

// buildProgress is the state that the output of `go build -v` has reported so far.
type buildProgress struct {
	of                   int // packages, about
	downloaded, compiled atomic.Int64
	last                 atomic.Bool // the program itself is compiled; only linking remains
}

func (b *buildProgress) text() string {
	switch downloaded, compiled := b.downloaded.Load(), b.compiled.Load(); {
	case b.last.Load():
		return fmt.Sprintf("%d packages compiled, linking", compiled)
	case compiled == 0 && downloaded == 0:
		return "nothing to download or compile so far"
	default:
		return fmt.Sprintf("%d modules downloaded, %d packages compiled of about %d", downloaded, compiled, b.of)
	}
}

// read counts the downloads and compiled packages in the output, and returns the last few of the other lines, which
// are errors.
func (b *buildProgress) read(output io.Reader) []string {
	var complaints []string
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			b.downloaded.Add(1)
		case line == componentsPath:
			b.compiled.Add(1)
			b.last.Store(true)
		case !strings.ContainsAny(line, " :#\t"):
			b.compiled.Add(1)
		default:
			complaints = append(complaints, strings.TrimSpace(line))
			complaints = complaints[max(0, len(complaints)-5):]
		}
	}
	return complaints
}
