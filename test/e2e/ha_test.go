package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// only runs a case in `make e2e` and `make nightly` that takes minutes, or that tests durations.
func only(t *testing.T) {
	t.Helper()
	if effort(0, 1, 1) == 0 {
		t.Skip("takes minutes or tests durations; make e2e runs it")
	}
}

// promised compares a duration with its limit on the machine of a nightly run, which runs nothing else. Elsewhere it
// only logs it.
func promised(t *testing.T, what string, elapsed, limit time.Duration) {
	t.Helper()
	t.Logf("%s: %s, the limit is %s", what, elapsed, limit)
	if effort(0, 0, 1) == 1 && elapsed > limit {
		t.Errorf("%s: %s, want %s at most", what, elapsed, limit)
	}
}

// lease returns the Lease of the election.
func (c *cluster) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "karpenter-leader-election"}, lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

// decided fails until the given number of further claims was created.
func (s *stage) decided(before census, claims int) func(context.Context) error {
	return func(context.Context) error {
		if now := s.ledger.count(s.name).claimsEver - before.claimsEver; now < claims {
			return fmt.Errorf("%d claims were created, want %d", now, claims)
		}
		return nil
	}
}

// TestKilledLeader kills the leader while it launches, and creates more pods meanwhile. Within 5 s of the end of its
// Lease the standby has decided about everything, nothing is launched twice, and every pod runs.
func TestKilledLeader(t *testing.T) {
	only(t)
	c := ownCluster(t)
	s := newStage(t, c, "crash")
	const lease = "--leader-election-lease=6s"
	c.runController(t, filepath.Join(artifacts, "leader.log"), lease)
	before := s.ledger.count(s.name)
	s.scale("app", 3) // when this pod runs, the controller leads
	await(t, patience, "the leader to be at work", s.running("app", 3))
	leader := c.lease(t)
	standby, err := startController(c, filepath.Join(artifacts, "standby.log"), lease)
	if err != nil {
		t.Fatal(err)
	}
	await(t, patience, "the standby to be ready", standby.ready)

	s.scale("app", 12)
	s.killWhen(moment{"the leader has begun to buy", func(before, now census, _ *stage) bool { return now.claimsEver > before.claimsEver+1 }}, before)
	s.scale("app", 24)
	c.controller = standby
	held := c.lease(t)
	if *held.Spec.HolderIdentity != *leader.Spec.HolderIdentity {
		t.Fatalf("the Lease was held by %s, and not by the killed one", *held.Spec.HolderIdentity)
	}
	lost := held.Spec.RenewTime.Add(time.Duration(*held.Spec.LeaseDurationSeconds) * time.Second)
	await(t, patience, "the standby to decide", s.decided(before, 8))
	elapsed := time.Since(lost)
	promised(t, "from the end of the Lease to the standby's decision", elapsed, 5*time.Second)
	await(t, patience, "all pods to run", s.running("app", 24))
	s.checkBought("the leader bought", before, 8)
}

// TestRollingUpgrade replaces replicas one after the other, each in the middle of a launch, like a rolling upgrade.
// Nothing is lost and nothing is launched twice.
func TestRollingUpgrade(t *testing.T) {
	only(t)
	c := ownCluster(t)
	s := newStage(t, c, "crash")
	start := func(name string) *controller {
		p, err := startController(c, filepath.Join(artifacts, name+".log"), "--leader-election-lease=6s")
		if err != nil {
			t.Fatal(err)
		}
		await(t, patience, name+" to be ready", p.ready)
		return p
	}
	c.controller = start("upgrade-0")
	before := s.ledger.count(s.name)
	for i := range 3 {
		next := start(fmt.Sprintf("upgrade-%d", i+1))
		s.scale("app", 12*(i+1))
		await(t, patience, "the leader to have begun to buy", s.decided(before, 4*i+1))
		if err := c.controller.stop(); err != nil {
			t.Error(err)
		}
		c.controller = next
	}
	await(t, patience, "all pods to run", s.running("app", 36))
	s.checkBought("replicas were replaced", before, 12)
}

// TestAPIServerAway blocks the controller's connections to the API server for a minute, which costs it its Lease. It
// does not end. 10 s after the API server is reachable again it has decided about the pods that were created
// meanwhile, and existing objects are unchanged.
func TestAPIServerAway(t *testing.T) {
	only(t)
	c := ownCluster(t)
	s := newStage(t, c, "crash")
	road := newRoad(t, c)
	c.runController(t, filepath.Join(artifacts, "away.log"), "--kubeconfig="+road.kubeconfig)
	before := s.ledger.count(s.name)
	s.scale("app", 12)
	await(t, patience, "the pods to run", s.running("app", 12))

	road.block()
	s.scale("app", 24)
	outage := time.NewTimer(time.Minute) // the duration itself is tested
	<-outage.C
	if !c.controller.running() {
		t.Fatalf("the controller ended; its log is %s", c.controller.log)
	}
	back := time.Now()
	road.open()
	await(t, patience, "the controller to decide", s.decided(before, 8))
	elapsed := time.Since(back)
	promised(t, "from the API server's return to the controller's decision", elapsed, 10*time.Second)
	await(t, patience, "all pods to run", s.running("app", 24))
	s.checkBought("the API server was away", before, 8)
	if now := s.ledger.count(s.name); now.claims != 8 || now.nodes != 8 {
		t.Errorf("%d claims and %d nodes exist, want 8: needed ones were removed", now.claims, now.nodes)
	}
	if !c.controller.running() {
		t.Errorf("the controller ended; its log is %s", c.controller.log)
	}
	if log, err := os.ReadFile(c.controller.log); err != nil || !strings.Contains(string(log), "the Lease is lost; starting again") {
		t.Errorf("the controller kept its Lease for a minute without the API server (%v); its log is %s", err, c.controller.log)
	}
}

// road is the only connection from a controller to the API server, or back, and can be blocked: connections are then
// cut, and new ones end at once.
type road struct {
	kubeconfig string
	address    string
	dial       func() (net.Conn, error) // its destination

	mutex   sync.Mutex
	blocked bool
	under   map[net.Conn]bool
}

func newRoad(t *testing.T, c *cluster) *road {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	to := ""
	r := openRoad(t, func() (net.Conn, error) { return net.Dial("tcp", to) })
	r.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		to, server.Host = server.Host, r.address
		cluster.Server = server.String()
	}
	if err := clientcmd.WriteToFile(*config, r.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return r
}

// openRoad returns a road from an address of its own to the destination of dial.
func openRoad(t *testing.T, dial func() (net.Conn, error)) *road {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{under: map[net.Conn]bool{}, address: listener.Addr().String(), dial: dial}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go r.carry(from)
		}
	}()
	return r
}

func (r *road) open() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.blocked = false
}

func (r *road) block() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.blocked = true
	for connection := range r.under {
		_ = connection.Close()
	}
}

// carry forwards one connection until either side ends it.
func (r *road) carry(from net.Conn) {
	defer from.Close()
	to, err := r.dial()
	if err != nil {
		return
	}
	defer to.Close()
	if !r.keep(from, to) {
		return
	}
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = from.Close()
			_ = to.Close()
		})
	}
	both.Wait()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.under, from)
	delete(r.under, to)
}

// keep records connections that can be cut. It returns false if the road is blocked.
func (r *road) keep(connections ...net.Conn) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, connection := range connections {
		r.under[connection] = !r.blocked
	}
	return !r.blocked
}
