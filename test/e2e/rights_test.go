package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// logged fails until the controller's log contains a text, from an offset on.
func (p *controller) logged(text string, from int) func(context.Context) error {
	return func(context.Context) error {
		log, err := os.ReadFile(p.log)
		if err == nil && !strings.Contains(string(log[from:]), text) {
			err = fmt.Errorf("the log %s does not say %q", p.log, text)
		}
		return err
	}
}

// measured fails until a line of the controller's metrics begins with a name and contains all texts.
func (p *controller) measured(name string, texts ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", p.metrics), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(body)) {
			has := strings.HasPrefix(line, name)
			for _, text := range texts {
				has = has && strings.Contains(line, text)
			}
			if has {
				return nil
			}
		}
		return fmt.Errorf("no metric %s has %q", name, texts)
	}
}

// TestRightsTakenAway removes the permissions of the account while the controller runs, and restores them. First it
// keeps only its permissions for the Lease; the second time it loses those too. It logs which permissions are
// missing, and recovers by itself.
func TestRightsTakenAway(t *testing.T) {
	only(t)
	directory, err := os.MkdirTemp(artifacts, "own-")
	if err != nil {
		t.Fatal(err)
	}
	c, err := startCluster(t.Context(), directory, "kwok") // not ownCluster: requests are denied here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.controller.kill()
		c.stop()
		giveBack(t, directory, filepath.Dir(c.audit))
	})
	s := newStage(t, c, "crash")
	c.runController(t, filepath.Join(artifacts, "rights.log"), "--leader-election-lease=10s")
	before := s.ledger.count(s.name)
	s.scale("app", 3)
	await(t, patience, "the controller to be at work", s.running("app", 3))

	back := s.take(&rbacv1.ClusterRoleBindingList{})
	from := s.logSize()
	s.scale("app", 6)
	await(t, patience, "the log to name what is forbidden", c.controller.logged("is forbidden", from))
	await(t, patience, "the metric to count it", c.controller.measured("rest_client_requests_total", `code="403"`))
	back()
	await(t, patience, "the pods to run", s.running("app", 6))

	backCluster, backNamespace := s.take(&rbacv1.ClusterRoleBindingList{}), s.take(&rbacv1.RoleBindingList{})
	from = s.logSize()
	s.scale("app", 12)
	await(t, patience, "the Lease to be lost", c.controller.logged("starting again as a standby", from))
	backNamespace()
	backCluster()
	await(t, patience, "the pods to run", s.running("app", 12))
	s.checkBought("rights were taken away and given back", before, 4)
}

func (s *stage) logSize() int {
	s.t.Helper()
	info, err := os.Stat(s.controller.log)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(info.Size())
}

// take deletes the bindings of the controller's account, and returns a function that restores them.
func (s *stage) take(list client.ObjectList) (back func()) {
	s.t.Helper()
	if err := s.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	var taken []client.Object
	switch bindings := list.(type) {
	case *rbacv1.ClusterRoleBindingList:
		for i := range bindings.Items {
			if b := &bindings.Items[i]; ofAccount(b.Subjects) {
				taken = append(taken, b)
			}
		}
	case *rbacv1.RoleBindingList:
		for i := range bindings.Items {
			if b := &bindings.Items[i]; ofAccount(b.Subjects) {
				taken = append(taken, b)
			}
		}
	}
	if len(taken) == 0 {
		s.t.Fatalf("the account has no %T", list)
	}
	for _, binding := range taken {
		if err := s.Delete(s.t.Context(), binding); err != nil {
			s.t.Fatal(err)
		}
	}
	return func() {
		s.t.Helper()
		for _, binding := range taken {
			binding.SetResourceVersion("")
			binding.SetUID("")
			binding.SetCreationTimestamp(metav1.Time{})
			binding.SetManagedFields(nil)
			if err := s.Create(s.t.Context(), binding); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func ofAccount(subjects []rbacv1.Subject) bool {
	return len(subjects) == 1 && subjects[0].Namespace == account.Namespace && subjects[0].Name == account.Name
}
