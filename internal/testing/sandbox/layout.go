package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// minimumSpace is the required free disk space in bytes. etcd allocates 128 MB for its log when it starts, and ends
// when the disk is full.
const minimumSpace = 256 << 20

// layout is the data directory; its methods return the paths inside it.
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

// DirectoryError reports that a path cannot be a sandbox's data directory.
type DirectoryError struct{ DataDir, Problem string }

func (e *DirectoryError) Error() string {
	return fmt.Sprintf("data directory %q: %s", e.DataDir, e.Problem)
}

// ExitCode returns the exit code of a program that was called with this directory: its usage is invalid.
func (e *DirectoryError) ExitCode() int { return 2 }

// CheckDataDir returns a *DirectoryError for a path that is not a directory, and for a directory with content that is
// not a sandbox's: a sandbox would write among unrelated files. It changes nothing.
func CheckDataDir(dataDir string) error {
	l, err := absolute(dataDir)
	if err != nil {
		return err
	}
	return l.check()
}

// MakeDataDir creates the data directory if needed and marks it as a sandbox's. Its errors are those of CheckDataDir.
func MakeDataDir(dataDir string) error {
	l, err := absolute(dataDir)
	if err != nil {
		return err
	}
	return l.ensure()
}

// check recognizes a sandbox's directory by the lock file, which is created first and never removed.
func (l layout) check() error {
	entries, err := os.ReadDir(string(l))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &DirectoryError{string(l), "reading it: " + reasonOf(err)}
	}
	isSandbox := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == filepath.Base(l.lock()) })
	if len(entries) > 0 && !isSandbox {
		return &DirectoryError{string(l), fmt.Sprintf("it is not empty and not a sandbox (%s is in it); want a new or an empty directory", entries[0].Name())}
	}
	return nil
}

// ensure creates the data directory. It rejects a directory with unrelated content and a full disk.
func (l layout) ensure() error {
	if err := l.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(string(l), 0o700); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("making the data directory: %w", err)
	} else if err != nil {
		return &DirectoryError{string(l), "making it: " + reasonOf(err)}
	}
	mark, err := os.OpenFile(l.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("marking the data directory: %w", err)
	}
	if err := errors.Join(mark.Close(), os.MkdirAll(l.path("logs"), 0o700)); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	return l.space()
}

// reasonOf returns a file error without the path, which the caller's message already contains.
func reasonOf(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// space returns an error when the disk of the data directory is full.
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
