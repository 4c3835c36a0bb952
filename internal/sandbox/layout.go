package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// minimumSpace on disk, in bytes: etcd reserves 128 MB for its log as it starts,
// and would end with the disk full.
const minimumSpace = 256 << 20

// layout is where things are in a data directory.
type layout string

func (l layout) path(elements ...string) string {
	return filepath.Join(append([]string{string(l)}, elements...)...)
}

func (l layout) pki(file string) string         { return l.path("pki", file) }
func (l layout) log(component string) string    { return l.path("logs", component+".log") }
func (l layout) kubeconfig() string             { return l.path("kubeconfig") }
func (l layout) client(component string) string { return l.path("clients", component+".kubeconfig") }
func (l layout) etcdData() string               { return l.path("etcd") }
func (l layout) ports() string                  { return l.path("ports.json") }
func (l layout) status() string                 { return l.path("status.json") }
func (l layout) options() string                { return l.path("options.json") }
func (l layout) lock() string                   { return l.path("supervisor.lock") }

// ensure makes the data directory, and refuses one whose disk is full.
func (l layout) ensure() error {
	if err := os.MkdirAll(l.path("logs"), 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	return l.space()
}

// space says no when the disk of the data directory is full.
func (l layout) space() error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(string(l), &disk); err != nil {
		return fmt.Errorf("asking for the free space in %s: %w", string(l), err)
	}
	if free := uint64(disk.Bavail) * uint64(disk.Bsize); free < minimumSpace {
		return fmt.Errorf("the disk of the data directory %s is full: %d MB free, a sandbox needs %d MB", string(l), free>>20, minimumSpace>>20)
	}
	return nil
}
