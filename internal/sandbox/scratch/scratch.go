// Package scratch makes folders for the temporary data of tests and benchmarks that do not outlive the process that made
// them, whatever ends it: clusters, binaries and workloads of killed runs add up to tens of gigabytes otherwise.
//
//	New ──marks, locked──> in use ──Remove──> gone
//	                          |   └──Keep────> marked as kept: logs only ──a day──> removed by the next New
//	                          └──killed──────> marked, the lock is free ─────────> removed by the next New
//
// Every folder has a file by which it is known, the marker: it holds the folder's name, so that a copy, or a folder that
// somebody has renamed to keep it, is nobody's but theirs. What has no marker of ours, or belongs to another user, is never
// removed, whatever its name and age. .ci/scratch makes and removes such folders by the same rules.
//
// The lock is flock(2) on the marker, which the kernel lets go of when the process ends; a process id in a file could be
// somebody else's by then. It is taken before the file has the marker's name: a marker that can be locked is one whose
// maker is gone. Children do not inherit it. A maker that is killed before leaves an empty folder.
//
// Nothing here knows what is in a folder but for the names of logs. A data directory of a sandbox has a lock of its own,
// which says who supervises it; this one says whether anybody will come back for the data.
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

// marker is the file by which a folder is known to be one of these. It has the folder's name in its first line, and the word
// kept in a second one when there is nobody to use it any more.
const marker = ".karpenter-scratch"

// kept is the marker's second line.
const kept = "kept\n"

// keptFor is how long a folder of a run that failed stays.
const keptFor = 24 * time.Hour

// Folder belongs to this process until Remove or Keep.
type Folder struct {
	Path string
	lock *os.File
}

// New makes a folder where os.TempDir is, named prefix and something random, and removes those that belong to nobody any
// more. What cannot be removed is left.
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

// mark makes the marker of a folder, locked from the first moment on.
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

// inUse is what the marker of a folder holds while it is used.
func inUse(folder string) string { return filepath.Base(folder) + "\n" }

// Remove ends the folder.
func (f *Folder) Remove() error {
	return errors.Join(remove(f.Path), f.lock.Close())
}

// Keep removes everything but the logs, which stay for a day: for runs that failed.
func (f *Folder) Keep() error {
	if err := KeepLogs(f.Path); err != nil {
		return errors.Join(err, f.lock.Close())
	}
	_, err := f.lock.WriteString(kept)
	return errors.Join(err, f.lock.Close())
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
		case e.Name() != marker && !strings.Contains(e.Name(), ".log"):
			problems = append(problems, os.Remove(path))
		}
	}
	return errors.Join(problems...)
}

// remove takes the marker last: who is killed meanwhile leaves a folder that is still known.
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

// sweep removes the folders that belong to nobody at a time.
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

// abandoned returns the marker, locked by us, if nobody has it locked and its folder is not kept; else nil.
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

// over reports whether a marker that nobody has locked is the folder's own, and whether the folder's time is over.
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

// ours reports whether a file belongs to the user who we are.
func ours(about os.FileInfo) bool {
	stat, known := about.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}
