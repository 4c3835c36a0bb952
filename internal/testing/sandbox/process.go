package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a running component.
type process struct {
	name  string
	log   string
	grace time.Duration
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // how it ended; read after ended is closed
}

// spawner starts processes from one thread that lives as long as the spawner. Linux sends the parent-death signal
// when the thread that forked ends.
type spawner chan func()

func newSpawner() spawner {
	s := make(spawner)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for start := range s {
			start()
		}
	}()
	return s
}

// start runs the command with its output in the log. The log of the previous run is kept as <log>.previous. died is
// called when the process has ended.
func (s spawner) start(c component, argv []string, log string, died func(*process)) (*process, error) {
	if err := os.Rename(log, log+".previous"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	defer output.Close()
	p := &process{name: c.name, log: log, grace: c.grace, ended: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	s <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
		died(p)
	}()
	return p, nil
}

// stop ends the process: by SIGTERM, and by SIGKILL once its grace period has passed or hurry is closed.
func (p *process) stop(hurry <-chan struct{}) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(p.grace)
	defer patience.Stop()
	select {
	case <-p.ended:
		return
	case <-hurry:
	case <-patience.C:
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// DeadError reports that a component ended unexpectedly.
type DeadError struct {
	Component string
	How       string // "exit status 1", "signal: killed"
	LastLine  string // last line of its log; may be empty
	Log       string // path
}

func (e *DeadError) Error() string {
	if e.LastLine == "" {
		return fmt.Sprintf("%s died (%s); its log is %s", e.Component, e.How, e.Log)
	}
	return fmt.Sprintf("%s died (%s): %s; its log is %s", e.Component, e.How, e.LastLine, e.Log)
}

func (p *process) deadError() *DeadError {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	last := lastLine(p.log)
	if telling(last) < 2 && strings.HasPrefix(how, "signal: ") {
		last = "" // another process killed it, so its earlier output does not explain the end
	}
	return &DeadError{Component: p.name, How: how, LastLine: last, Log: p.log}
}

// lastLine returns the line of a log that best explains the end, shortened: the last of the most informative kind. It
// ignores indented lines, which belong to usage text and stack traces.
func lastLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if size, err := file.Stat(); err == nil && size.Size() > 64<<10 {
		_, _ = file.Seek(-64<<10, io.SeekEnd)
	}
	best, said := "", 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" || line[0] == ' ' || line[0] == '\t' {
			continue
		}
		if telling := telling(line); telling >= said {
			best, said = line, telling
		}
	}
	best = plainText(best)
	const longest = 300
	if len(best) > longest {
		best = best[:longest] + "..."
	}
	return best
}

// telling rates a line of a log: 3 names a cause outside the program, 2 is a fatal message, 1 an ordinary line, 0 an
// ordinary line at Kubernetes' level info.
func telling(line string) int {
	lower := strings.ToLower(line)
	switch {
	case strings.Contains(lower, "no space left on device"), strings.Contains(lower, "address already in use"):
		return 3
	case strings.HasPrefix(lower, "error"), strings.HasPrefix(lower, "panic:"),
		strings.Contains(lower, `"level":"fatal"`), strings.Contains(lower, "command failed"):
		return 2
	case strings.HasPrefix(line, "I") && strings.Contains(line, "] "):
		return 0
	default:
		return 1
	}
}

// plainText extracts the message from a line of JSON, which is etcd's log format.
func plainText(line string) string {
	var entry struct {
		Message string `json:"msg"`
		Error   string `json:"error"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Message == "" {
		return line
	}
	if entry.Error == "" {
		return entry.Message
	}
	return entry.Message + ": " + entry.Error
}
