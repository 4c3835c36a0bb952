// Package scratch creates folders for temporary data of tests and benchmarks. The folders do not outlive the process
// that created them, however it ends. Otherwise the clusters, binaries and workloads of killed runs add up to tens of
// gigabytes.
//
//	New ──marks, locked──> in use ──Remove──> gone
//	                          |   └──Keep────> marked as kept: logs only ──a day──> removed by the next New
//	                          └──killed──────> marked, the lock is free ─────────> removed by the next New
//
// Every folder has a file that identifies it, the marker. The marker holds the folder's name, so that a copied or
// renamed folder is not recognized and never removed. A folder without such a marker, or of another user, is never
// removed, whatever its name and age. .ci/scratch creates and removes such folders by the same rules.
//
// The lock is flock(2) on the marker. The kernel releases it when the process ends; a process id in a file could have
// been reused by then. The file is locked before it gets the marker's name, so a marker that can be locked belongs to
// a process that has ended. Children do not inherit the lock. A process that is killed before this leaves an empty
// folder.
//
// The package knows nothing about a folder's content but the names of logs. A data directory of a sandbox has a lock
// of its own, which identifies its supervisor; the lock of this package states whether a process still uses the data.
package scratch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// marker is the file that identifies a folder of this package. Its first line holds the folder's name. A second line
// with the word kept means that no process uses the folder anymore.
const marker = ".karpenter-scratch"

// kept is the marker's second line.
const kept = "kept\n"

// keptFor is how long the logs of a failed run are kept.
const keptFor = 24 * time.Hour

// Folder belongs to this process until Remove or Keep.
type Folder struct {
	Path string
	lock *os.File
}

// New creates a folder in os.TempDir whose name is prefix and a random suffix. It also removes abandoned folders.
// Folders that cannot be removed are ignored.
func New(prefix string) (*Folder, error) {
	sweep(time.Now())
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, fmt.Errorf("making a folder for temporary data: %w", err)
	}
	lock, err := mark(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Folder{Path: path, lock: lock}, nil
}

// mark creates the marker of a folder, locked from the start.
func mark(folder string) (*os.File, error) {
	file := filepath.Join(folder, marker)
	early := file + ".new"
	lock, err := os.OpenFile(early, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("marking %s as in use: %w", folder, err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = lock.WriteString(inUse(folder))
	}
	if err == nil {
		err = os.Rename(early, file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", folder, err), lock.Close())
	}
	return lock, nil
}

// inUse returns the content of the marker while the folder is used.
func inUse(folder string) string { return filepath.Base(folder) + "\n" }

// Remove removes the folder.
func (f *Folder) Remove() error {
	return errors.Join(remove(f.Path), f.lock.Close())
}

// Keep removes everything but the logs, which are kept for a day. Use it for runs that failed.
func (f *Folder) Keep() error {
	if err := KeepLogs(f.Path); err != nil {
		return errors.Join(err, f.lock.Close())
	}
	_, err := f.lock.WriteString(kept)
	return errors.Join(err, f.lock.Close())
}

// KeepLogs removes everything below a folder except files with .log in their names, and then empty folders.
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
		case e.Name() != marker && !strings.Contains(e.Name(), ".log"):
			problems = append(problems, os.Remove(path))
		}
	}
	return errors.Join(problems...)
}

// remove removes the marker last: if the process is killed meanwhile, the folder is still recognized.
func remove(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("removing %s: %w", folder, err)
	}
	var problems []error
	for _, e := range entries {
		if e.Name() != marker {
			problems = append(problems, os.RemoveAll(filepath.Join(folder, e.Name())))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

// sweep removes the folders that are abandoned at the time now.
func sweep(now time.Time) {
	markers, err := filepath.Glob(filepath.Join(os.TempDir(), "*", marker))
	if err != nil {
		return
	}
	for _, file := range markers {
		if lock := abandoned(file, now); lock != nil {
			_ = remove(filepath.Dir(file))
			lock.Close()
		}
	}
}

// abandoned returns the marker, locked by this process, if no process had it locked and its folder is not kept; else
// nil.
func abandoned(file string, now time.Time) *os.File {
	folder := filepath.Dir(file)
	if about, err := os.Lstat(folder); err != nil || !about.IsDir() || !ours(about) {
		return nil
	}
	lock, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil || !over(lock, folder, now) {
		lock.Close()
		return nil
	}
	return lock
}

// over reports whether an unlocked marker belongs to this folder, and whether the folder may be removed.
func over(lock *os.File, folder string, now time.Time) bool {
	about, err := lock.Stat()
	if err != nil || !about.Mode().IsRegular() || !ours(about) {
		return false
	}
	content, err := io.ReadAll(lock)
	if err != nil {
		return false
	}
	switch string(content) {
	case inUse(folder):
		return true
	case inUse(folder) + kept:
		return now.Sub(about.ModTime()) > keptFor
	}
	return false
}

// ours reports whether a file belongs to the current user.
func ours(about os.FileInfo) bool {
	stat, known := about.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}
