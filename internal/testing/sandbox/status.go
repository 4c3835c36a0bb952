package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Phase is a phase in the life of a sandbox.
//
//	absent ──up──> starting ──> running ──down──> stopping ──> stopped ──up──> starting
//	                   |           |
//	                   └───────────┴── a component or the supervisor dies ──> failed ──up──> starting
type Phase string

// The phases of a sandbox.
const (
	Absent   Phase = "absent" // never started in this directory
	Starting Phase = "starting"
	Running  Phase = "running"
	Stopping Phase = "stopping"
	Stopped  Phase = "stopped"
	Failed   Phase = "failed" // Message holds the reason
)

// Status describes a sandbox to processes that did not start it.
type Status struct {
	Phase      Phase             `json:"phase"`
	Message    string            `json:"message,omitempty"`    // what is awaited, or why it failed
	Supervisor int               `json:"supervisor,omitempty"` // process id
	Changed    time.Time         `json:"changed"`
	Server     string            `json:"server,omitempty"`     // URL of the API server
	Kubeconfig string            `json:"kubeconfig,omitempty"` // path
	Assets     string            `json:"assets,omitempty"`     // folder of the executables
	Components []ComponentStatus `json:"components,omitempty"`
}

// ComponentStatus describes one process of a sandbox.
type ComponentStatus struct {
	Name    string `json:"name"`
	Process int    `json:"process"` // process id
	Port    int    `json:"port"`
	Log     string `json:"log"` // path
}

// Kubectl returns the kubectl command for the sandbox, without its arguments.
func (s Status) Kubectl() []string {
	return append(executable(s.Assets, kubectl), "--kubeconfig="+s.Kubeconfig)
}

// ReadStatus returns the status of the sandbox in the directory. It corrects a stored status that its writer could
// not update: a sandbox whose supervisor was killed is Failed, and one whose supervisor runs is not Absent because
// its status file was removed or damaged.
func ReadStatus(dataDir string) (Status, error) {
	l, err := absolute(dataDir)
	if err != nil {
		return Status{}, err
	}
	status, why, err := l.readStatus()
	if err != nil {
		return Status{}, err
	}
	if why == "" && (status.Phase == Stopped || status.Phase == Failed) {
		return status, nil
	}
	holder, held := lockHolder(l)
	switch {
	case why == "" && held:
		return status, nil
	case why == "":
		return reread(l, status), nil
	case held:
		return l.reconstruct(holder), nil
	case why == missing:
		return Status{Phase: Absent}, nil
	}
	return Status{Phase: Failed, Message: why}, nil
}

// missing is the reason for a missing status when there is no file.
const missing = "it is missing"

// readStatus reads the status file. why describes what is wrong with it, if anything.
func (l layout) readStatus() (status Status, why string, err error) {
	content, err := os.ReadFile(l.status())
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, missing, nil
	}
	if err != nil {
		return Status{}, "", fmt.Errorf("reading the sandbox's status: %w", err)
	}
	if err := json.Unmarshal(content, &status); err != nil {
		return Status{}, fmt.Sprintf("reading %s: %v", l.status(), err), nil
	}
	if status.Phase == "" {
		return Status{}, fmt.Sprintf("reading %s: no phase in it", l.status()), nil
	}
	return status, "", nil
}

// reconstruct returns the status of a sandbox that has a supervisor and no status file, from its other files. A
// supervisor writes its status as soon as it has the lock, so the file is read once more.
func (l layout) reconstruct(supervisor int) Status {
	status, why, err := l.readStatus()
	if err == nil && why == "" {
		return status
	}
	status = Status{
		Phase: Running, Supervisor: supervisor,
		Message: fmt.Sprintf("%s cannot be read, but a supervisor holds the lock %s", l.status(), l.lock()),
	}
	var options Options
	if content, err := os.ReadFile(l.options()); err == nil && json.Unmarshal(content, &options) == nil {
		status.Assets = options.Assets
	}
	config, err := clientConfig(l)
	if err != nil { // not written yet
		status.Phase = Starting
		return status
	}
	status.Server, status.Kubeconfig = config.Host, l.kubeconfig()
	return status
}

// reread returns the status after the supervisor was found to have ended: it may have written its final status after
// the first read.
func reread(l layout, before Status) Status {
	var now Status
	if content, err := os.ReadFile(l.status()); err == nil && json.Unmarshal(content, &now) == nil {
		if now.Phase == Stopped || now.Phase == Failed {
			return now
		}
	}
	before.Phase = Failed
	if err := l.space(); err != nil { // which kept the supervisor from writing its final status
		before.Message = fmt.Sprintf("%v; logs are in %s", err, l.path("logs"))
		return before
	}
	before.Message = fmt.Sprintf("the supervisor (process %d) was killed, and its components with it; logs are in %s", before.Supervisor, l.path("logs"))
	return before
}

// absolute returns the layout of the directory with an absolute path, since components and supervisor may have
// another working directory. A path that cannot be a directory gives a *DirectoryError.
func absolute(dataDir string) (layout, error) {
	if dataDir == "" {
		return "", &DirectoryError{Problem: "it has no name"}
	}
	path, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("resolving the data directory: %w", err)
	}
	found, err := os.Stat(path)
	if err == nil && !found.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return "", &DirectoryError{path, "it is not a directory"}
	}
	return layout(path), nil
}

// writeJSON replaces the file atomically, so that readers see either the old or the new content.
func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	unfinished := path + ".unfinished"
	if err := os.WriteFile(unfinished, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	return os.Rename(unfinished, path)
}
