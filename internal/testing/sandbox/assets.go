package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/pflag"
)

// multicall is the name of the executable that contains every component.
const multicall = "kubernetes-components"

// modulePath is the module path in the go.mod of this source tree, componentsPath that of the module that builds the
// executable.
const (
	modulePath     = "github.com/karpenter-go/karpenter"
	componentsPath = modulePath + "/sandbox/kubernetes"
)

// AssetsOptions selects the executables of the control plane.
type AssetsOptions struct {
	// Binaries is where the executables come from: Auto, Build, or a folder with one executable per component or with
	// kubernetes-components. If it is empty, it is the value of KARPENTER_SANDBOX_BINARIES, and if that is empty too,
	// Build: tests build, so that no network and no server decides how they end. A command that a person runs has Auto
	// then (AddFlags).
	Binaries string
	// Mirror is the URL under which the archives of releases are, as PATHS of package download. If it is empty, it is the
	// value of KARPENTER_SANDBOX_MIRROR, or else the place where each product publishes its own.
	Mirror string
	// KubernetesVersion is the minor version to run, such as 1.33. If it is empty, the module's default is used, or the one
	// that a folder has.
	KubernetesVersion string
	// Progress is called with a line of text while a download or a build runs, by one goroutine at a time. It may be
	// nil.
	Progress func(string)

	otherwise string // Binaries, if nothing says what
}

// Values of Binaries that are no folder.
const (
	// Auto downloads the executables of the release of Kubernetes, and builds them if that is not possible.
	Auto = "auto"
	// Build builds all executables from source.
	Build = "build"
)

// The environment variables that AssetsOptions describes.
const (
	binariesVariable = "KARPENTER_SANDBOX_BINARIES"
	mirrorVariable   = "KARPENTER_SANDBOX_MIRROR"
)

// AddFlags adds the flags that set the options, for a command that a person runs.
func (o *AssetsOptions) AddFlags(flags *pflag.FlagSet) {
	o.otherwise = Auto
	flags.StringVar(&o.Binaries, "binaries", "",
		"auto downloads the release of Kubernetes and builds it if that is not possible, build builds it, and a folder has an executable "+
			"per component; by default $"+binariesVariable+", or auto")
	flags.StringVar(&o.Binaries, "sandbox-assets", "", "the folder of --binaries")
	_ = flags.MarkDeprecated("sandbox-assets", "use --binaries") // the flag exists
	flags.StringVar(&o.Mirror, "binaries-mirror", "",
		"URL with the archives of the releases, such as URL/v1.36.0/kubernetes-server-linux-amd64.tar.gz; by default $"+
			mirrorVariable+", or where they are published")
	flags.StringVar(&o.KubernetesVersion, "kubernetes-version", "",
		"minor version of Kubernetes to run, such as 1.33; by default that of the source tree, or of the folder")
}

// FolderError reports that a given folder cannot provide the executables.
type FolderError struct{ err error }

func (e *FolderError) Error() string { return e.err.Error() }

// Unwrap returns the problem.
func (e *FolderError) Unwrap() error { return e.err }

// ExitCode is the exit code of a program that ends with the error: the folder is input.
func (e *FolderError) ExitCode() int { return 2 }

// Assets returns the folder with the control plane's executables. The folder also serves as KUBEBUILDER_ASSETS.
// Assets tries, in this order: the given folder; executables of the module sandbox/kubernetes, built or (Auto) downloaded
// in part, when this program runs inside its source tree or was built there and Go is installed (a first build takes 4 to 10
// minutes on 2 cores per Kubernetes version); the folder of kubernetes-components on the PATH. Errors to distinguish:
// *FolderError, and *VersionError for a version that the module does not support.
func Assets(ctx context.Context, options AssetsOptions) (string, error) {
	options = options.complete()
	if options.Binaries != Auto && options.Binaries != Build {
		folder, err := givenAssets(ctx, options.Binaries, options.KubernetesVersion)
		if err != nil {
			return "", &FolderError{err}
		}
		return folder, nil
	}
	module, found := sources()
	if _, err := exec.LookPath("go"); found && err == nil {
		from, err := sourceOf(module, options.KubernetesVersion)
		if err != nil {
			return "", err
		}
		if options.Binaries == Auto {
			return released(ctx, from, options)
		}
		return build(ctx, from, options.Progress)
	}
	if options.KubernetesVersion != "" {
		return "", fmt.Errorf("no Kubernetes %s to run: the sandbox is built for a version inside a clone of the repository, with Go on the PATH", options.KubernetesVersion)
	}
	if program, err := exec.LookPath(multicall); err == nil {
		if program, err = filepath.Abs(program); err == nil {
			return filepath.Dir(program), nil
		}
	}
	if found {
		return "", fmt.Errorf("no control plane to run: no go command on the PATH to build %s with, and no %s there; "+
			"install Go, or give a folder of executables with --binaries", module, multicall)
	}
	return "", errors.New("no control plane to run: no source tree of " + modulePath + " in the current directory or above it, and no " +
		multicall + " on the PATH; run this in a clone of the repository, " +
		"or give the folder that `karpenter-sandbox assets` prints there with --binaries")
}

// complete returns the options with what holds for those that are not set. Downloads and the build run at once and
// report to Progress, which need not expect that.
func (o AssetsOptions) complete() AssetsOptions {
	o.Binaries = cmp.Or(o.Binaries, os.Getenv(binariesVariable), o.otherwise, Build)
	o.Mirror = cmp.Or(o.Mirror, os.Getenv(mirrorVariable))
	report := o.Progress
	var lock sync.Mutex
	o.Progress = func(text string) {
		if report == nil {
			return
		}
		lock.Lock()
		defer lock.Unlock()
		report(text)
	}
	return o
}

// givenAssets checks a folder that was named: that each executable exists, runs, and is of the version, if one is wanted.
func givenAssets(ctx context.Context, folder, version string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("resolving the folder of executables: %w", err)
	}
	if content, err := os.Stat(folder); err != nil {
		return "", fmt.Errorf("reading the folder of executables (auto and build are the other values): %w", err)
	} else if !content.IsDir() {
		return "", fmt.Errorf("executables in %s: is a file, want a folder with one executable per component", folder)
	}
	if missing := missingComponents(folder, catalog); len(missing) > 0 {
		return "", fmt.Errorf("executables in %s: no %s; want executables %s, or %s", folder, strings.Join(missing, ", "),
			strings.Join(componentNames(catalog), ", "), multicall)
	}
	if err := checkVersions(ctx, folder, strings.TrimPrefix(version, "v")); err != nil {
		return "", fmt.Errorf("executables in %s: %w", folder, err)
	}
	return folder, nil
}

// executable returns the command that runs the component: its own executable, or the multi-call executable with the
// component's name as its first argument.
func executable(assets, component string) []string {
	own := filepath.Join(assets, component)
	if isExecutable(own) {
		return []string{own}
	}
	return []string{filepath.Join(assets, multicall), component}
}

func missingComponents(assets string, wanted []component) []string {
	if isExecutable(filepath.Join(assets, multicall)) {
		return nil
	}
	var missing []string
	for i := range wanted {
		if !isExecutable(filepath.Join(assets, wanted[i].name)) {
			missing = append(missing, wanted[i].name)
		}
	}
	return missing
}

func isExecutable(path string) bool {
	file, err := os.Stat(path)
	return err == nil && file.Mode().IsRegular() && file.Mode()&0o111 != 0
}

// sources returns the folder of the module sandbox/kubernetes in the source tree of the current directory, or else in the source
// tree that this program was built from.
func sources() (string, bool) {
	var starts []string
	if here, err := os.Getwd(); err == nil {
		starts = append(starts, here)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	for _, start := range starts {
		if module, found := sourcesAbove(start); found {
			return module, true
		}
	}
	return "", false
}

func sourcesAbove(folder string) (string, bool) {
	for {
		module := filepath.Join(folder, "sandbox", "kubernetes")
		if isModule(folder, modulePath) && isModule(module, componentsPath) {
			return module, true
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", false
		}
		folder = parent
	}
}

func isModule(folder, path string) bool {
	content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimSpace(first) == "module "+path
}
