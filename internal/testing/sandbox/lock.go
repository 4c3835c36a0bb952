package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// lockSupervisor makes this process the sandbox's supervisor until the returned file is closed or the process ends
// for any reason. The file contains the process id, for Down.
func lockSupervisor(l layout) (*os.File, error) {
	file, err := os.OpenFile(l.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	// A process that reads the status holds the lock for an instant, so locking is retried.
	deadline := time.Now().Add(time.Second)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			_ = file.Close()
			return nil, &RunningError{DataDir: string(l)}
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := file.Truncate(0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	identity := fmt.Sprintf("%d %s\n", os.Getpid(), processStart(os.Getpid()))
	if _, err := file.WriteAt([]byte(identity), 0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	return file, nil
}

// RunningError reports that the directory's sandbox already has a supervisor.
type RunningError struct{ DataDir string }

func (e *RunningError) Error() string {
	return fmt.Sprintf("a sandbox is running in %s already", e.DataDir)
}

// lockHolder returns the supervisor's process id (0 if it is not written yet), and whether there is a supervisor.
func lockHolder(l layout) (int, bool) {
	file, err := os.Open(l.lock())
	if err != nil {
		return 0, false
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return 0, false // closing releases the lock
	}
	content := make([]byte, 64)
	n, _ := file.Read(content)
	var id int
	var start string
	if _, err := fmt.Sscanf(strings.TrimSpace(string(content[:n])), "%d %s", &id, &start); err != nil {
		return 0, true
	}
	if processStart(id) != start { // written by the previous supervisor and not yet overwritten
		return 0, true
	}
	return id, true
}
