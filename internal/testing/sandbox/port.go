package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"time"
)

// Ports are below the range that Linux uses for local ports of outgoing connections (32768 and up). Otherwise a
// connection could take a port between its choice and the listen call.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// PortTakenError reports that another program now uses a port that this sandbox used before.
type PortTakenError struct {
	Component string
	Port      int
	File      string // the file that stores the sandbox's ports
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d of %s is in use by another program: end that program, or remove %s so that free ports are chosen",
		e.Port, e.Component, e.File)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// ensurePorts returns a port for each name: the stored one, or a free one, which it stores.
func ensurePorts(l layout, names []string) (map[string]int, error) {
	ports := map[string]int{}
	switch content, err := os.ReadFile(l.ports()); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reading the sandbox's ports: %w", err)
	default:
		if err := json.Unmarshal(content, &ports); err != nil {
			return nil, fmt.Errorf("reading the sandbox's ports from %s: %w", l.ports(), err)
		}
	}
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	for _, name := range names {
		listener, err := holdPort(ports[name])
		if err != nil {
			return nil, &PortTakenError{Component: name, Port: ports[name], File: l.ports()}
		}
		held = append(held, listener)
		ports[name] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, writeJSON(l.ports(), ports)
}

// holdPort listens on the port, or on any free port if it is 0.
func holdPort(port int) (net.Listener, error) {
	if port != 0 {
		return holdAgain(port)
	}
	for range 200 {
		listener, err := net.Listen("tcp", address(lowestPort+rand.IntN(highestPort-lowestPort)))
		if err == nil {
			return listener, nil
		}
	}
	return net.Listen("tcp", address(0))
}

// dyingTime is the maximum time that the components of a killed supervisor take to release their ports. The kernel
// ends their threads one by one.
const dyingTime = 5 * time.Second

// holdAgain listens on a port that this sandbox used before.
func holdAgain(port int) (net.Listener, error) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(dyingTime); ; <-again.C {
		listener, err := net.Listen("tcp", address(port))
		if err == nil || time.Now().After(deadline) {
			return listener, err
		}
	}
}

// portNames returns the names under which the components' ports are stored.
func portNames(chosen []component) []string {
	var names []string
	for i := range chosen {
		names = append(names, chosen[i].name)
		if chosen[i].name == etcd {
			names = append(names, etcdPeer)
		}
	}
	return slices.Clip(names)
}
