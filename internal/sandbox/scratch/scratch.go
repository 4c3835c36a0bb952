// Package scratch makes folders for the temporary data of tests and benchmarks that do not outlive the process that made
// them, whatever ends it: clusters, binaries and workloads of killed runs add up to tens of gigabytes otherwise.
//
//	New ──locks──> in use ──Remove──> gone
//	                 |   └──Keep────> logs only, unlocked ──a day──> removed by the next New
//	                 └──killed──────> the lock is free ─────────────> removed by the next New
//
// The lock is flock(2) on a file in the folder, which the kernel lets go of when the process ends; a process id in a file
// could be somebody else's by then. Children do not inherit it. A folder that was kept has no such file, and neither has
// one that was made an instant ago: both are left alone until nothing has changed in them for a day.
//
// Nothing here knows what is in a folder but for the names of logs. A data directory of a sandbox has a lock of its own,
// which says who supervises it; this one says whether anybody will come back for the data.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lockName is the file in a folder that its maker has locked.
const lockName = ".in-use"

// keptFor is how long after its last change a folder without a lock stays.
const keptFor = 24 * time.Hour

// Folder belongs to this process until Remove or Keep.
type Folder struct {
	Path string
	lock *os.File
}

// New makes a folder where os.TempDir is, named prefix and something random, and removes those of the same prefix that
// belong to nobody any more. What cannot be removed is left: it may be another user's.
func New(prefix string) (*Folder, error) {
	sweep(prefix, time.Now())
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, fmt.Errorf("making a folder for temporary data: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("marking %s as in use: %w", path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), lock.Close())
	}
	return &Folder{Path: path, lock: lock}, nil
}

// Remove ends the folder.
func (f *Folder) Remove() error {
	return errors.Join(os.RemoveAll(f.Path), f.lock.Close())
}

// Keep removes everything but the logs, which stay for a day: for runs that failed.
func (f *Folder) Keep() error {
	return errors.Join(KeepLogs(f.Path), f.lock.Close())
}

// KeepLogs removes everything below a folder but files with .log in their names, and folders in which none is left.
func KeepLogs(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("clearing %s: %w", folder, err)
	}
	var problems []error
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case e.IsDir():
			if err := KeepLogs(path); err != nil {
				problems = append(problems, err)
			} else if err := os.Remove(path); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
				problems = append(problems, err)
			}
		case !strings.Contains(e.Name(), ".log"):
			problems = append(problems, os.Remove(path))
		}
	}
	return errors.Join(problems...)
}

// sweep removes the folders of a prefix that belong to nobody at a time.
func sweep(prefix string, now time.Time) {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if abandoned(folder, now) {
			_ = os.RemoveAll(folder)
		}
	}
}

// abandoned tells whether nobody has the folder locked or, where there is no lock, whether it is old.
func abandoned(folder string, now time.Time) bool {
	about, err := os.Lstat(folder)
	if err != nil || !about.IsDir() {
		return false
	}
	lock, err := os.Open(filepath.Join(folder, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return now.Sub(about.ModTime()) > keptFor
	}
	if err != nil {
		return false
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
