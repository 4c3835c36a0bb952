package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
	"github.com/karpenter-go/karpenter/plugin/doctor"
)

// clinic is an API server with an installation that has no problems, apart from the missing controller.
type clinic struct {
	client.Client
	t          *testing.T
	kubeconfig string
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	s := sandboxtest.StartSandbox(t, sandboxtest.Options{})
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions { // no running controller would convert
		if d.Spec.Conversion != nil {
			d.Spec.Conversion.Webhook.ClientConfig.Service.Name = doctor.SwitchedOff
		}
	}
	if err := sandbox.Install(t.Context(), config, definitions); err != nil {
		t.Fatal(err)
	}
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &clinic{t: t, kubeconfig: s.Kubeconfig()}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	c.create(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{}
	c.create(pool)
	c.poolReady(metav1.ConditionTrue)
	c.create(c.lease("kube-system"))
	for _, name := range []string{"default", "karpenter"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := c.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return c
}

func (c *clinic) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// create creates objects, and returns a function that removes them.
func (c *clinic) create(objects ...client.Object) (remove func()) {
	c.t.Helper()
	for _, object := range objects {
		c.must(c.Create(c.t.Context(), object))
	}
	return func() {
		for _, object := range objects {
			c.must(client.IgnoreNotFound(c.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)))
			if len(object.GetFinalizers()) > 0 {
				object.SetFinalizers(nil)
				c.must(client.IgnoreNotFound(c.Update(c.t.Context(), object)))
			}
			c.must(client.IgnoreNotFound(c.Delete(c.t.Context(), object, client.GracePeriodSeconds(0))))
		}
	}
}

func (c *clinic) lease(namespace string) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(time.Now())
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karpenter-leader-election"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("karpenter-0"), LeaseDurationSeconds: new(int32(86400)), RenewTime: &renewed,
		}}
}

func (c *clinic) poolReady(status metav1.ConditionStatus) {
	c.t.Helper()
	pool := &karpv1.NodePool{}
	c.must(c.Get(c.t.Context(), client.ObjectKey{Name: "general"}, pool))
	pool.StatusConditions().Clear(karpv1.ConditionValidationSucceeded)
	for _, kind := range []string{karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady} {
		pool.StatusConditions().SetTrue(kind)
	}
	if status == metav1.ConditionFalse {
		pool.StatusConditions().SetFalse(karpv1.ConditionValidationSucceeded, "NodePoolValidationFailed", "limits must be positive")
	}
	c.must(c.Status().Update(c.t.Context(), pool))
}

// claim creates a claim that is being launched, with conditions that are true. If leaving is set, it is deleted and
// its finalizer is kept.
func (c *clinic) claim(name string, leaving bool, conditions ...string) (remove func()) {
	c.t.Helper()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.LabelNodePool: "general"},
		Finalizers: []string{karpv1.FinalizerTermination}}}
	claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
	claim.Spec.Requirements = []karpv1.Requirement{}
	remove = c.create(claim)
	for _, kind := range conditions {
		claim.StatusConditions().SetTrue(kind)
	}
	claim.Status.NodeName, claim.Status.ProviderID = name, "kwok://"+name
	c.must(c.Status().Update(c.t.Context(), claim))
	if leaving {
		c.must(c.Delete(c.t.Context(), claim))
	}
	return remove
}

// edited creates a claim whose node has another machine than its status names.
func (c *clinic) edited(machine string) (remove func()) {
	c.t.Helper()
	removeClaim := c.claim("edited", false, karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized)
	claim := &karpv1.NodeClaim{}
	c.must(c.Get(c.t.Context(), client.ObjectKey{Name: "edited"}, claim))
	removeNode := c.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "edited-node", Finalizers: []string{karpv1.FinalizerTermination},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: karpv1.GroupVersion.String(), Kind: "NodeClaim",
				Name: claim.Name, UID: claim.UID}}},
		Spec: corev1.NodeSpec{ProviderID: machine},
	})
	return func() { removeNode(); removeClaim() }
}

// edit changes an object and returns a function that reverts the change.
func (c *clinic) edit(object client.Object, change, back func()) (heal func()) {
	c.t.Helper()
	apply := func(f func()) {
		c.t.Helper()
		c.must(c.Get(c.t.Context(), client.ObjectKeyFromObject(object), object))
		f()
		c.must(c.Update(c.t.Context(), object))
	}
	apply(change)
	return func() { apply(back) }
}

// consult runs the verb and returns the codes of its findings, each once.
func (c *clinic) consult(now func() time.Time, arguments ...string) (codes []string, report doctor.Report, err error) {
	command := doctorCommandAt(now)
	command.SilenceErrors, command.SilenceUsage = true, true
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs(append([]string{"--kubeconfig", c.kubeconfig, "-o", "json"}, arguments...))
	err = command.ExecuteContext(c.t.Context())
	if wrong := json.Unmarshal(out.Bytes(), &report); wrong != nil {
		c.t.Fatalf("%v (%v): %s", wrong, err, out.String())
	}
	for _, finding := range report.Findings {
		codes = append(codes, finding.Code)
		for _, symptom := range finding.Follows {
			codes = append(codes, symptom.Code)
		}
		for field, text := range map[string]string{"problem": finding.Problem, "fix": finding.Fix, "object": finding.Object} {
			if text == "" {
				c.t.Errorf("a finding has no %s: %+v", field, finding)
			}
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes), report, err
}

// role grants the service account default/karpenter all permissions but one verb.
func (c *clinic) role(but string) (remove func()) {
	var rules []rbacv1.PolicyRule
	for _, right := range doctor.Rights(doctor.Installation{Provider: "kwok", LeaseName: "karpenter-leader-election",
		LeaseNamespace: "kube-system"}) {
		for _, verb := range right.Verbs {
			if verb+" "+right.Resource != but {
				rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{right.Group}, Resources: []string{right.Resource}, Verbs: []string{verb}})
			}
		}
	}
	return c.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "clinic"}, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "clinic"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "clinic"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "karpenter"}}},
	)
}

// illness is a defect of an installation, and the exact set of codes that the doctor finds for it.
type illness struct {
	codes string
	about string
	// fall breaks the installation; heal repairs it.
	fall      func() (heal func())
	now       func() time.Time
	arguments []string
}

// illnesses ends with one that cannot be repaired.
func (c *clinic) illnesses() []illness {
	return slices.Concat(c.poolIllnesses(), c.electionIllnesses(), c.claimIllnesses(), c.definitionIllnesses())
}

// poolIllnesses are those of pools and of their classes.
func (c *clinic) poolIllnesses() []illness {
	return []illness{
		{codes: "PoolNotReady", about: "limits must be positive", fall: func() func() {
			c.poolReady(metav1.ConditionFalse)
			return func() { c.poolReady(metav1.ConditionTrue) }
		}},
		{codes: "OtherProvider", about: "EC2NodeClass.karpenter.k8s.aws are not of", fall: c.otherProvider},
		{codes: "ClassMissing", about: "KWOKNodeClass elsewhere", fall: func() func() {
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
			ref := &pool.Spec.Template.Spec.NodeClassRef
			return c.edit(pool, func() { ref.Name = "elsewhere" }, func() { ref.Name = "default" })
		}},
		{codes: "ClassNotReady", about: "subnets", fall: func() func() {
			set := func(ready bool) {
				class := &kwokv1alpha1.KWOKNodeClass{}
				c.must(c.Get(c.t.Context(), client.ObjectKey{Name: "default"}, class))
				if class.StatusConditions().SetTrue("Ready"); !ready {
					class.StatusConditions().SetFalse("Ready", "SubnetsNotFound", "no subnets")
				}
				c.must(c.Status().Update(c.t.Context(), class))
			}
			set(false)
			return func() { set(true) }
		}},
	}
}

// electionIllnesses are those of the controller: its permissions, its clock and its election.
func (c *clinic) electionIllnesses() []illness {
	none := func() (heal func()) { return func() {} }
	account := []string{"--service-account=default/karpenter"}
	lease := func(change func(*coordinationv1.LeaseSpec)) func() (heal func()) {
		return func() (heal func()) {
			object := c.lease("kube-system")
			return c.edit(object, func() { change(&object.Spec) }, func() { object.Spec = c.lease("").Spec })
		}
	}
	return []illness{
		{codes: "CannotLook", about: "serviceaccount/default/missing",
			arguments: []string{"--service-account=default/missing"}, fall: func() func() { return func() {} }},
		{codes: "PermissionMissing", about: "pods/eviction", arguments: account, fall: func() func() { return c.role("create pods/eviction") }},
		{codes: "ClockSkew", about: "differ by 1h0m", fall: none, now: func() time.Time { return time.Now().Add(time.Hour) }},
		{codes: "CannotLook LeaderMissing", about: "no Lease exists", fall: none, arguments: []string{"--leader-election-name=another"}},
		{codes: "LeaderMissing", about: "no controller holds", fall: lease(func(l *coordinationv1.LeaseSpec) { l.HolderIdentity = new("") })},
		{codes: "LeaderSilent", about: "karpenter-0 holds the Lease and has not renewed it", fall: lease(func(l *coordinationv1.LeaseSpec) {
			l.LeaseDurationSeconds, l.RenewTime = new(int32(15)), new(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
		})},
		{codes: "CannotLook ElectionNotExclusive", about: "2 Leases of the leader election are held",
			fall: func() func() { return c.create(c.lease("default")) }},
	}
}

// claimIllnesses are those of claims, of nodes and of older objects.
func (c *clinic) claimIllnesses() []illness {
	hasty := []string{"--patience=0s"}
	return []illness{
		{codes: "ClaimNotLaunched", about: "nodeclaim/slow", arguments: hasty, fall: func() func() { return c.claim("slow", false) }},
		{codes: "ClaimNotRegistered", about: "has not joined the cluster", arguments: hasty,
			fall: func() func() { return c.claim("slow", false, karpv1.ConditionLaunched) }},
		{codes: "ClaimNotInitialized", about: "startup taint", arguments: hasty, fall: func() func() {
			return c.claim("slow", false, karpv1.ConditionLaunched, karpv1.ConditionRegistered)
		}},
		{codes: "ClaimNotTerminated", about: "still exists", arguments: hasty,
			fall: func() func() { return c.claim("slow", true, karpv1.ConditionLaunched) }},
		{codes: "FinalizerOrphaned", about: "node/left", fall: func() func() {
			return c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "left", Finalizers: []string{karpv1.FinalizerTermination}}})
		}},
		{codes: "ClaimMismatched", about: "its node edited-node has the instance kwok://its-own",
			fall: func() func() { return c.edited("kwok://its-own") }},
		{codes: "OlderNotReleased", about: "kubectl patch provisioner left", arguments: hasty, fall: c.heldProvisioner},
		{codes: "OlderNotReady", about: "kubectl delete provisioner taken", fall: c.takenName},
		{codes: "ClaimNotTerminated DrainBlocked", about: "web-0 on leaving", arguments: hasty, fall: c.blockedDrain},
	}
}

// definitionIllnesses are those of definitions, of their conversion and of webhooks.
func (c *clinic) definitionIllnesses() []illness {
	aws := []string{"--cloud-provider=aws"}
	definition := func() *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "nodeclaims.karpenter.sh"}}
	}
	return []illness{
		{codes: "WebhookBroken", about: "gone/webhook does not exist", fall: func() func() {
			return c.create(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "left-behind"},
				Webhooks: []admissionv1.ValidatingWebhook{{
					Name: "validation.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
					ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "gone", Name: "webhook"}},
					Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
						Rule: admissionv1.Rule{APIGroups: []string{"karpenter.sh"}, APIVersions: []string{"v1"}, Resources: []string{"nodeclaims"}}}},
				}}})
		}},
		{codes: "DefinitionDiffers", about: "the schema of version v1", fall: func() func() {
			d := definition()
			var before string
			of := func() *apiextensionsv1.JSONSchemaProps { return d.Spec.Versions[0].Schema.OpenAPIV3Schema }
			return c.edit(d, func() { before, of().Description = of().Description, "another" }, func() { of().Description = before })
		}},
		{codes: "ConversionBroken", about: "no conversion webhook", fall: func() func() {
			d := definition()
			var before *apiextensionsv1.CustomResourceConversion
			return c.edit(d, func() {
				before, d.Spec.Conversion = d.Spec.Conversion, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			}, func() { d.Spec.Conversion = before })
		}},
		{codes: "ConversionBroken", about: "no controller has registered its conversion webhook", fall: func() func() {
			d := definition()
			service := func() *apiextensionsv1.ServiceReference { return d.Spec.Conversion.Webhook.ClientConfig.Service }
			return c.edit(d, func() { service().Name = "karpenter" }, func() { service().Name = doctor.SwitchedOff })
		}},
		{codes: "ConversionBroken", about: "requests in older versions fail intentionally", fall: func() func() {
			d := definition()
			var before *apiextensionsv1.CustomResourceConversion
			return c.edit(d, func() {
				before = d.Spec.Conversion.DeepCopy()
				d.Spec.Conversion.Webhook.ClientConfig.CABundle = authority(c.t)
			}, func() { d.Spec.Conversion = before })
		}},
		{codes: "ConversionBroken", about: "Kind=NodePool failed", arguments: aws,
			fall: func() func() { return c.noAnswer("nodepools.karpenter.sh") }},
		{codes: "ConversionBroken", about: "Kind=NodeClaim failed", arguments: aws,
			fall: func() func() { return c.noAnswer("nodeclaims.karpenter.sh") }},
		{codes: "ConversionBroken", about: "Kind=EC2NodeClass failed", arguments: aws,
			fall: func() func() { return c.noAnswer("ec2nodeclasses.karpenter.k8s.aws") }},
		// This is last, because it cannot be repaired: deleting the definition deletes its objects.
		{codes: "ClassMissing DefinitionMissing", about: "KWOKNodeClass", fall: func() func() {
			c.must(c.Delete(c.t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kwoknodeclasses.karpenter.kwok.sh"}}))
			return func() {}
		}},
	}
}

// otherProvider creates an AWS pool that the controller of simulated nodes has marked.
func (c *clinic) otherProvider() (heal func()) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{}
	heal = c.create(pool)
	pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
	pool.StatusConditions().SetFalse(karpv1.ConditionNodeClassReady, karpv1.ReasonOtherProvider,
		"node classes of the kind EC2NodeClass.karpenter.k8s.aws are not of the controller's provider")
	c.must(c.Status().Update(c.t.Context(), pool))
	return heal
}

// noAnswer makes a definition name the webhook of a controller that no longer runs: its Service points outside of the
// cluster, where no process listens.
func (c *clinic) noAnswer(definition string) (heal func()) {
	remove := c.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gone"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
	}})
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition}}
	var before *apiextensionsv1.CustomResourceConversion
	back := c.edit(d, func() {
		before = d.Spec.Conversion.DeepCopy()
		at := d.Spec.Conversion.Webhook.ClientConfig
		at.CABundle = authority(c.t)
		at.Service.Namespace, at.Service.Name, at.Service.Port = "default", "gone", new(int32(1))
	}, func() { d.Spec.Conversion = before })
	return func() { back(); remove() }
}

// heldProvisioner creates a deleted Provisioner whose finalizer is never removed, because no controller runs.
func (c *clinic) heldProvisioner() (heal func()) {
	p := &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "left", Finalizers: []string{karpv1.FinalizerMadeFrom}}}
	heal = c.create(p)
	c.must(c.Delete(c.t.Context(), p))
	return heal
}

// takenName creates a Provisioner whose pool has the name of another pool.
func (c *clinic) takenName() (heal func()) {
	p := &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	heal = c.create(p)
	p.StatusConditions().SetFalse(karpv1alpha5.ConditionApplied, karpv1alpha5.ReasonNameTaken,
		`NodePool "taken" was not made from this object`)
	c.must(c.Status().Update(c.t.Context(), p))
	return heal
}

// blockedDrain creates a claim that is being removed, and a pod on its node that a PodDisruptionBudget protects.
func (c *clinic) blockedDrain() (heal func()) {
	labels := map[string]string{"app": "web"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", Labels: labels}, Spec: corev1.PodSpec{
		NodeName: "leaving", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		}}
	remove := c.create(pod, pdb)
	pod.Status.Phase = corev1.PodRunning
	c.must(c.Status().Update(c.t.Context(), pod))
	claim := c.claim("leaving", true, karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized)
	return func() { remove(); claim() }
}

// TestDoctor checks that a healthy installation has no findings and exit code 0, and that every defect has its own
// code and exit code 1.
func TestDoctor(t *testing.T) {
	c := newClinic(t)
	var reported string
	defer func() {
		if t.Failed() {
			t.Log(reported)
		}
	}()
	eventually(t, "all is well", func() bool {
		codes, report, err := c.consult(time.Now, "--patience=0s")
		reported = fmt.Sprintf("%v %+v", err, report)
		return err == nil && len(codes) == 0 && report.Looked["permissions"] > 50 && report.Looked["nodePools"] == 1
	})
	t.Log(reported)
	c.fitsTerminal()
	c.reports()
	remove := c.role("")
	if codes, report, err := c.consult(time.Now, "--service-account=default/karpenter"); err != nil {
		t.Errorf("with a role of all permissions: %v: %v %+v", err, codes, report.Findings)
	}
	remove()
	for _, ill := range c.illnesses() {
		heal := ill.fall()
		now := ill.now
		if now == nil {
			now = time.Now
		}
		eventually(t, "the doctor finds "+ill.codes, func() bool {
			codes, report, err := c.consult(now, ill.arguments...)
			text, _ := json.Marshal(report.Findings)
			if got := fmt.Sprint(strings.Join(codes, " "), " ", string(text)); got != reported {
				reported = got
				t.Log(got)
			}
			checkReport(t, &report)
			return err != nil && strings.Join(codes, " ") == ill.codes && strings.Contains(string(text), ill.about)
		})
		heal()
	}
	if n := len(c.illnesses()); n < 10 {
		t.Errorf("only %d illnesses", n)
	}
}

// fitsTerminal checks that the text of the verb fits a terminal, unless -o wide is given.
func (c *clinic) fitsTerminal() {
	c.t.Helper()
	for format, fits := range map[string]bool{formatText: true, formatWide: false} {
		command, out := doctorCommandAt(time.Now), &terminal{columns: 80}
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetOut(out)
		command.SetArgs([]string{"--kubeconfig", c.kubeconfig, "--patience=0s", "-o", format})
		c.must(command.ExecuteContext(c.t.Context()))
		if n := widest(out.String()); (n <= 80) != fits {
			c.t.Errorf("-o %s prints up to %d characters on 80:\n%s", format, n, out.String())
		}
	}
}

// checkReport checks that the text of a report fits terminals, except for lines that consist of one command.
func checkReport(t *testing.T, report *doctor.Report) {
	t.Helper()
	for _, columns := range []int{80, 120} {
		for line := range strings.Lines(wrappedProse(report.Text(), columns)) {
			command := strings.HasPrefix(strings.TrimLeft(line, " "), "kubectl ")
			if n := widest(line); n > columns && !command {
				t.Errorf("%d characters on %d: %s", n, columns, line)
			}
		}
	}
	if text := report.Text(); wrappedProse(text, 0) != text {
		t.Errorf("text for a file is changed:\n%s", text)
	}
}

// TestDoctorRefusesFlags checks that invalid values of flags are errors that name the flag.
func TestDoctorRefusesFlags(t *testing.T) {
	for want, arguments := range map[string][]string{
		"--output is": {"-o", "name"}, "--cloud-provider is": {"--cloud-provider=gcp"}, "NAMESPACE/NAME": {"--service-account=karpenter"},
		"--patience is": {"--patience=-1s"}, "kubeconfig": {"--kubeconfig=" + t.TempDir() + "/none"},
	} {
		command := doctorCommandAt(time.Now)
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs(arguments)
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", arguments, err, want)
		}
	}
}

// authority returns a valid certificate.
func authority(t *testing.T) []byte {
	t.Helper()
	bundle, _, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}
