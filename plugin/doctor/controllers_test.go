package doctor

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/plugin/viewer"
)

// deployment returns a Deployment that runs the controller as the chart does.
func deployment(namespace, provider string, ready int32, env ...corev1.EnvVar) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": namespace}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karpenter", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "karpenter",
				Containers: []corev1.Container{{Name: "controller", Args: []string{"controller"}, Env: append([]corev1.EnvVar{
					{Name: "CLOUD_PROVIDER", Value: provider}, {Name: "LEADER_ELECTION_NAMESPACE", Value: namespace}}, env...)}},
			}},
		},
		Status: appsv1.DeploymentStatus{ReadyReplicas: ready},
	}
}

func podOf(d *appsv1.Deployment, status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-0", Labels: d.Spec.Selector.MatchLabels},
		Status: status}
}

func leaseOf(namespace, holder string, silent time.Duration) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karpenter-leader-election"}}
	if holder != "" {
		at := metav1.NewMicroTime(now.Add(-silent))
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &at}
	}
	return lease
}

// definitionsAsInstalled returns those of this version as the chart installs them: no controller has registered its
// webhook.
func definitionsAsInstalled(t *testing.T) (list []*apiextensionsv1.CustomResourceDefinition, objects []client.Object) {
	t.Helper()
	list, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		objects = append(objects, d.DeepCopy())
	}
	return list, objects
}

// report returns the doctor's report on a cluster with these objects. The doctor has all permissions except to list
// hidden kinds, which are separated by commas. The service account exists unless its kind is hidden. The role for
// viewers must allow to list everything that the doctor does.
func report(t *testing.T, s *Source, hidden string, objects ...client.Object) *Report {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		karpv1.AddToScheme, karpv1alpha1.AddToScheme, karpv1alpha5.AddToScheme, autoscalingv1beta1.AddToScheme,
		awsv1.AddToScheme, awsv1alpha1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	expected, installed := definitionsAsInstalled(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
	}))
	defer server.Close()
	name := func(o client.Object) []string { return []string{o.GetName()} }
	if namespace, name, given := strings.Cut(s.Account, "/"); given && !strings.Contains(hidden, "ServiceAccount") {
		objects = append(slices.Clip(objects), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(installed, objects...)...).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", name).
		WithIndex(&corev1.Pod{}, "status.phase", func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} })
	s.Client = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			kind.Kind = strings.TrimSuffix(kind.Kind, "List")
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			resource.Resource = strings.Replace(resource.Resource, "overlaies", "overlays", 1)
			if name := resource.GroupResource().String(); !slices.Contains(viewer.Resources(), name) {
				t.Errorf("the role for viewers does not allow to list %s", name)
			}
			if slices.Contains(strings.Split(hidden, ","), kind.Kind) {
				return apierrors.NewForbidden(resource.GroupResource(), "", errors.New(`User "ann" cannot list it`))
			}
			return c.List(ctx, list, options...)
		},
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			switch review := object.(type) {
			case *authorizationv1.SelfSubjectAccessReview:
				review.Status.Allowed = true
			case *authorizationv1.SubjectAccessReview:
				about := review.Spec.ResourceAttributes
				review.Status.Allowed = about.Resource != "ec2nodeclasses" || about.Verb == "list" || about.Verb == "patch" || review.Spec.User == "system:serviceaccount:aws:karpenter"
			}
			return nil
		},
	})
	s.Config, s.Now, s.Expected = &rest.Config{Host: server.URL}, func() time.Time { return now }, expected
	if s.LeaseName == "" {
		s.LeaseName = "karpenter-leader-election"
	}
	f := s.Gather(t.Context())
	return NewReport(f, Examine(f, Options{Patience: time.Minute, Skew: time.Second}))
}

func findingLines(r *Report) []string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.Code+" "+f.Object)
		for _, symptom := range f.Follows {
			lines = append(lines, "  "+symptom.Code+" "+symptom.Object)
		}
	}
	return lines
}

// TestFreshInstall covers the state after the installation of the chart for simulated nodes, with a pending pod and a
// Lease that an earlier controller left: there is one problem, and everything else follows from it. Nothing is
// reported about AWS.
func TestFreshInstall(t *testing.T) {
	d := deployment("karpenter", "kwok", 0)
	pod := podOf(d, corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/3 nodes are available: 3 Insufficient cpu."}}})
	r := report(t, &Source{Account: "karpenter/karpenter"}, "", d, pod, leaseOf("karpenter", "", 0), leaseOf("kube-system", "", 0))
	want := []string{"ControllerNotReady deployment/karpenter/karpenter",
		"  LeaderMissing lease/karpenter/karpenter-leader-election",
		"  ConversionBroken customresourcedefinition/nodeclaims.karpenter.sh",
		"  ConversionBroken customresourcedefinition/nodepools.karpenter.sh"}
	got := findingLines(r)
	if len(got) > 1 && strings.HasPrefix(got[1], "  LeaderMissing lease/") {
		got[1] = want[1] // either of the Leases
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, r.Text())
	}
	text := r.Text()
	for _, part := range []string{"0 of 1 pods are ready: pod karpenter-0: Unschedulable: 0/3 nodes are available",
		"kubectl -n karpenter describe deployment karpenter", "\n  follows from it: ConversionBroken"} {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in\n%s", part, text)
		}
	}
	if strings.Contains(text, "NAMESPACE") || strings.Contains(text, "ec2nodeclasses") {
		t.Errorf("a placeholder, or a text about AWS:\n%s", text)
	}
}

// TestAfterCrash covers a crash with a Lease that is still held: missing renewals together with a missing webhook
// mean that the leader has stopped.
func TestAfterCrash(t *testing.T) {
	for _, c := range []struct {
		name   string
		silent time.Duration
		want   []string
	}{
		{"a renewal is late", 3 * time.Second, []string{"ConversionBroken customresourcedefinition/nodeclaims.karpenter.sh",
			"ConversionBroken customresourcedefinition/nodepools.karpenter.sh"}},
		{"several are", 7 * time.Second, []string{"LeaderSilent lease/kube-system/karpenter-leader-election",
			"  ConversionBroken customresourcedefinition/nodeclaims.karpenter.sh",
			"  ConversionBroken customresourcedefinition/nodepools.karpenter.sh"}},
		{"the Lease is over", time.Minute, []string{"LeaderSilent lease/kube-system/karpenter-leader-election",
			"  ConversionBroken customresourcedefinition/nodeclaims.karpenter.sh",
			"  ConversionBroken customresourcedefinition/nodepools.karpenter.sh"}},
	} {
		r := report(t, &Source{Installation: Installation{Provider: "kwok"}}, "", leaseOf("kube-system", "host_1", c.silent))
		if diff := cmp.Diff(c.want, findingLines(r)); diff != "" {
			t.Errorf("%s: -want +got:\n%s\n%s", c.name, diff, r.Text())
		}
	}
}

// TestElections verifies that Leases are counted by their holders, and that two controllers of different providers
// may both lead.
func TestElections(t *testing.T) {
	kwok, aws := deployment("kwok", "kwok", 1), deployment("aws", "aws", 1)
	const silent, cannot = time.Hour, "  CannotLook permissions in the controller's namespace"
	for _, c := range []struct {
		name    string
		objects []client.Object
		want    []string
	}{
		{"one", []client.Object{leaseOf("a", "x", 0)}, nil},
		{"one was left", []client.Object{leaseOf("a", "x", 0), leaseOf("b", "", 0)}, nil},
		{"one was left by a crash", []client.Object{leaseOf("a", "x", 0), leaseOf("b", "y", silent)}, nil},
		{"two lead", []client.Object{leaseOf("a", "x", 0), leaseOf("b", "y", 0)},
			[]string{"ElectionNotExclusive lease/b/karpenter-leader-election", cannot}},
		{"of two providers", []client.Object{kwok, aws, leaseOf("aws", "x", 0), leaseOf("kwok", "y", 0)}, nil},
		{"of one provider", []client.Object{deployment("kwok", "aws", 1), aws, leaseOf("aws", "x", 0), leaseOf("kwok", "y", 0)},
			[]string{"ElectionNotExclusive lease/kwok/karpenter-leader-election"}},
		{"none of two", []client.Object{leaseOf("a", "", 0), leaseOf("b", "y", silent)},
			[]string{"LeaderSilent lease/b/karpenter-leader-election", cannot}},
		{"none at all", nil, []string{"LeaderMissing lease", cannot}},
	} {
		r := report(t, &Source{}, "", c.objects...)
		got := slices.DeleteFunc(findingLines(r), func(line string) bool { return strings.Contains(line, ConversionBroken) })
		if diff := cmp.Diff(c.want, got, cmp.Transformer("nil", func(l []string) []string { return append([]string{}, l...) })); diff != "" {
			t.Errorf("%s: -want +got:\n%s\n%s", c.name, diff, r.Text())
		}
	}
}

// TestReviewByDeployment verifies that each controller's permissions are checked with its own account and provider.
func TestReviewByDeployment(t *testing.T) {
	kwok, aws := deployment("kwok", "kwok", 1), deployment("aws", "aws", 1)
	leases := []client.Object{leaseOf("aws", "x", 0), leaseOf("kwok", "y", 0)}
	for _, c := range []struct {
		account, hidden string
		denied          bool
		note            string
	}{
		{"kwok/karpenter", "", false, ""}, // permissions of the other provider's controller are not checked with it
		{"aws/karpenter", "", false, ""},
		{"other/karpenter", "", true, ""}, // no Deployment runs with that account: both are checked
		{"kwok/karpenter", "Deployment", false, "the Deployments of the controller are not examined"},
	} {
		r := report(t, &Source{Account: c.account}, c.hidden, append(leases, kwok, aws)...)
		denied := slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Code == PermissionMissing && strings.Contains(f.Object, "ec2nodeclasses") && !strings.Contains(f.Problem, otherClasses)
		})
		if denied != c.denied || !strings.Contains(strings.Join(r.Notes, "\n"), c.note) {
			t.Errorf("%s: denied %v, want %v\n%s", c.account, denied, c.denied, r.Text())
		}
	}
}

// TestDeniedKinds verifies that one finding names all kinds that the user may not list, and the role that allows it.
func TestDeniedKinds(t *testing.T) {
	r := report(t, &Source{}, "CustomResourceDefinition,Node,Pod,Lease", deployment("kwok", "kwok", 1))
	var denied []Finding
	for _, f := range r.Findings {
		if f.Code == CannotLook {
			denied = append(denied, f)
		}
	}
	want := []Finding{{Finding: cloud.Finding{Code: CannotLook,
		Object:  "CustomResourceDefinition,Node,Pod,the Lease karpenter-leader-election",
		Problem: `cannot be read: user "ann" may not list these kinds in the whole cluster; checks that depend on them are skipped`, Fix: viewer.Grant("ann")}}}
	if diff := cmp.Diff(want, denied); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBystander verifies that the permissions of a user that is not the controller are not reported as those of the
// controller.
func TestBystander(t *testing.T) {
	visible := []Controller{{Namespace: "kwok", Account: "karpenter"}}
	for _, c := range []struct {
		user, account string
		controllers   []Controller
		reported      bool
	}{
		{"ann", "", visible, false}, {"system:serviceaccount:kwok:karpenter", "", visible, true}, {"ann", "kwok/karpenter",
			visible, true}, {"", "", visible, true},
		{"ann", "", nil, false}, {"system:serviceaccount:kwok:karpenter", "", nil, true},
	} {
		client := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				if review, ok := object.(*authenticationv1.SelfSubjectReview); ok {
					if review.Status.UserInfo.Username = c.user; c.user == "" {
						return errors.New("the API server does not know this kind")
					}
				}
				return nil
			},
		})
		s := &Source{Client: client, Account: c.account}
		f := &Facts{Controllers: c.controllers}
		s.review(t.Context(), f, []Installation{{Provider: "kwok"}})
		if nowhere := len(f.Unread) > 0; nowhere != c.reported {
			t.Errorf("%+v: unread are %v", c, f.Unread)
		}
		if reported := len(f.Denied) > 0; reported != c.reported || (len(f.Notes) > 0) == c.reported {
			t.Errorf("%+v: %d permissions are missing, the notes are %q", c, len(f.Denied), f.Notes)
		}
	}
}

// TestControllerWaits verifies that the reasons why pods of the controller do not run are those that Kubernetes
// reports.
func TestControllerWaits(t *testing.T) {
	d := deployment("karpenter", "kwok", 0)
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
				Message: message}}}}}
	}
	crashed := waiting("CrashLoopBackOff", "back-off 40s restarting failed container")
	crashed.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2,
		Reason: "Error", Message: "karpenter: CLUSTER_NAME is missing"}
	for _, c := range []struct {
		status  corev1.PodStatus
		problem string
		fix     string
	}{
		{waiting("ImagePullBackOff", "no such image"), "pod karpenter-0: ImagePullBackOff: no such image",
			"kubectl -n karpenter describe pod karpenter-0"},
		{crashed, "the container ended with exit code 2 (Error): karpenter: CLUSTER_NAME is missing", "kubectl -n karpenter logs karpenter-0 --previous"},
		{waiting("ContainerCreating", ""), "pod karpenter-0: the pod has not started", "kubectl -n karpenter describe pod karpenter-0"},
		{corev1.PodStatus{Phase: corev1.PodRunning}, "pod karpenter-0: the pod runs, but is not ready", "logs karpenter-0"},
	} {
		r := report(t, &Source{}, "", d, podOf(d, c.status), leaseOf("karpenter", "", 0))
		switch f := r.Findings[0]; {
		case f.Code != ControllerNotReady:
			t.Errorf("f.Code is %v, want %v", f.Code, ControllerNotReady)
		case !strings.Contains(f.Problem, c.problem):
			t.Errorf("f.Problem lacks %q, %+v", c.problem, f)
		case !strings.Contains(f.Fix, c.fix):
			t.Errorf("f.Fix lacks %q, %+v", c.fix, f)
		}
	}
	none := deployment("karpenter", "kwok", 0)
	none.Spec.Replicas = new(int32(0))
	if r := report(t, &Source{}, "", none); r.Findings[0].Fix != "kubectl -n karpenter scale deployment karpenter --replicas=1" {
		t.Errorf("scaled to zero: %+v", r.Findings[0])
	}
}

// TestStaticCapacityOff verifies that a pool with a fixed number of nodes is a finding if the controller of its
// provider does not maintain such numbers.
func TestStaticCapacityOff(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}
	pool.Spec.Replicas = new(int64(3))
	pool.Spec.Template.Spec.NodeClassRef.Group = kwokv1alpha1.Group
	gates := func(value string) corev1.EnvVar { return corev1.EnvVar{Name: "FEATURE_GATES", Value: value} }
	for _, c := range []struct {
		name        string
		controllers []Controller
		found       bool
	}{
		{"nothing is known", nil, false},
		{"off", []Controller{*controllerOf(deployment("a", "kwok", 1))}, true},
		{"off in words", []Controller{*controllerOf(deployment("a", "kwok", 1, gates("NodeRepair=true,StaticCapacity=false")))}, true},
		{"on", []Controller{*controllerOf(deployment("a", "kwok", 1, gates("NodeRepair=true, StaticCapacity=true")))}, false},
		{"another provider's", []Controller{*controllerOf(deployment("a", "aws", 1))}, false},
	} {
		f := &Facts{Now: now, NoElection: true, Pools: []karpv1.NodePool{*pool}, Controllers: c.controllers}
		switch got := codes(f); {
		case (len(got) == 1 && got[0] == "StaticCapacityOff nodepool/fixed") != c.found:
			t.Errorf(`%s: (len(got) == 1 && got[0] == "StaticCapacityOff nodepool/fixed") is %v, want %v, %v`, c.name,
				(len(got) == 1 && got[0] == "StaticCapacityOff nodepool/fixed"), c.found, got)
		case !c.found && len(got) > 0:
			t.Errorf("%s: !c.found && len(got) > 0, %v", c.name, got)
		}
	}
}

// TestOldPolicy verifies that the many missing actions of a policy of Karpenter 0.x are one finding, and that a
// policy that lacks one action does not count as such.
func TestOldPolicy(t *testing.T) {
	denied := func(actions ...string) (list []cloud.Finding) {
		for _, action := range actions {
			list = append(list, cloud.Finding{Code: CloudPermissionDenied, Object: action, Problem: "the controller may not do " + action,
				Fix: "allow it"})
		}
		return list
	}
	r := NewReport(&Facts{}, denied("ec2:DescribeImages", "eks:DescribeCluster", "ec2:DescribeSpotPriceHistory",
		"pricing:GetProducts", "ec2:CreateTags"))
	want := []string{"PolicyOutdated iam", "  CloudPermissionDenied ec2:DescribeImages",
		"  CloudPermissionDenied ec2:DescribeSpotPriceHistory", "  CloudPermissionDenied eks:DescribeCluster",
		"  CloudPermissionDenied pricing:GetProducts", "CloudPermissionDenied ec2:CreateTags"}
	if diff := cmp.Diff(want, findingLines(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f := r.Findings[0]; !strings.Contains(f.Problem,
		"ec2:DescribeImages, ec2:DescribeSpotPriceHistory, eks:DescribeCluster, pricing:GetProducts") || !strings.Contains(f.Fix,
		"docs/migrating.md#the-iam-policy") {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff([]string{"CloudPermissionDenied ec2:DescribeImages", "CloudPermissionDenied pricing:GetProducts"},
		findingLines(NewReport(&Facts{}, denied("ec2:DescribeImages", "pricing:GetProducts")))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestOrderHasAllCodes verifies that every code of this package has a place in the order of a report.
func TestOrderHasAllCodes(t *testing.T) {
	source, err := os.ReadFile("examine.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ += "(\w+)" +//`).FindAllStringSubmatch(string(source), -1) {
		if !slices.Contains(order, m[1]) {
			t.Errorf("%s has no place in the order of a report", m[1])
		}
	}
}

// TestAccountMissing verifies that a service account that does not exist is one finding, not one for each permission.
func TestAccountMissing(t *testing.T) {
	r := report(t, &Source{Account: "kwok/karpentre"}, "ServiceAccount", deployment("kwok", "kwok", 1), leaseOf("kwok", "x", 0))
	var got []string
	for _, f := range r.Findings {
		if f.Code == CannotLook || f.Code == PermissionMissing {
			got = append(got, f.Object+": "+f.Fix)
		}
	}
	want := []string{"serviceaccount/kwok/karpentre: set --service-account to that of the controller, such as kwok/karpenter"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestUpstream verifies that a cluster that upstream's Karpenter runs is one finding, by its image in any registry
// or by its CRDs, that no fix replaces its CRDs, and that the controller of this project beside it is still
// examined.
func TestUpstream(t *testing.T) {
	upstreamed := func(image string) *appsv1.Deployment {
		d := deployment("kube-system", "aws", 1)
		d.Spec.Template.Spec.Containers[0].Image = image
		return d
	}
	stopped := func(d *appsv1.Deployment) *appsv1.Deployment {
		d.Spec.Replicas, d.Status.ReadyReplicas = new(int32), 0
		return d
	}
	const image = "1234.dkr.example/mirror/karpenter/controller:1.14.0@sha256:abc"
	for name, test := range map[string]struct {
		deployments []*appsv1.Deployment
		want        string
		others      bool
	}{
		"image": {[]*appsv1.Deployment{upstreamed(image)}, "UpstreamRuns deployment/kube-system/karpenter", false},
		"public image": {[]*appsv1.Deployment{upstreamed("public.ecr.aws/karpenter/controller:1.14.0")},
			"UpstreamRuns deployment/kube-system/karpenter", false},
		"beside it": {[]*appsv1.Deployment{upstreamed(image), deployment("own", "aws", 1)},
			"UpstreamRuns deployment/kube-system/karpenter", true},
		"replaced by it": {[]*appsv1.Deployment{stopped(upstreamed(image)), deployment("own", "aws", 1)}, "", true},
		"in place of it": {[]*appsv1.Deployment{upstreamed(image), stopped(deployment("own", "aws", 1))},
			"UpstreamRuns deployment/kube-system/karpenter", false},
		"own": {[]*appsv1.Deployment{upstreamed("example.com/karpenter-go/karpenter:1.0.0")}, "", true},
	} {
		objects := []client.Object{}
		for _, d := range test.deployments {
			objects = append(objects, d)
		}
		r := report(t, &Source{}, "", objects...)
		got, others := "", false
		for _, f := range r.Findings {
			if f.Code == UpstreamRuns {
				got = f.Code + " " + f.Object
			} else {
				others = true
			}
		}
		if got != test.want || others != test.others || !test.others && strings.Contains(r.Text(), "kubectl apply") {
			t.Errorf("%s: found %q, want %q, and others: %v\n%s", name, got, test.want, others, r.Text())
		}
		if strings.Contains(r.Text(), "scaled to 0") {
			t.Errorf("%s: the fix starts a second controller:\n%s", name, r.Text())
		}
	}
}

// TestUpstreamByDefinitions verifies that upstream's Karpenter is recognized by its CRDs where no Deployment is
// visible.
func TestUpstreamByDefinitions(t *testing.T) {
	expected, _ := definitionsAsInstalled(t)
	f := &Facts{Now: now, NoElection: true, Expected: expected}
	for _, d := range expected {
		d = d.DeepCopy()
		d.Spec.Conversion = nil
		d.Spec.Versions = slices.DeleteFunc(d.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != "v1" })
		f.Installed = append(f.Installed, *d)
	}
	if diff := cmp.Diff([]string{"UpstreamRuns customresourcedefinition/nodepools.karpenter.sh"}, codes(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if problem := upstream(f, Options{})[0].Problem; !strings.HasPrefix(problem, "the cluster has the CRDs of another Karpenter") {
		t.Errorf("found %s", problem)
	}
	f.Controllers = []Controller{{Namespace: "own", Name: "karpenter", Ready: 1, Wanted: 1}}
	if got := codes(f); slices.Contains(got, "UpstreamRuns customresourcedefinition/nodepools.karpenter.sh") {
		t.Errorf("with a controller of this project: %v", got)
	}
}
