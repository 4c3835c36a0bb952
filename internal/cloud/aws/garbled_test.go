package aws

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// garbles are responses that replace the real one although the call was executed.
var garbles = []struct {
	name string
	awssim.Fault
}{
	{"the page of a load balancer", awssim.Fault{Status: http.StatusServiceUnavailable,
		Body: "<html>\r\n<head><title>503 Service Temporarily Unavailable</title></head>\r\n<body>\r\n<center><h1>503</h1></center>\r\n</body>\r\n</html>\r\n"}},
	{"a bad gateway that says nothing", awssim.Fault{Status: http.StatusBadGateway, ContentType: "text/plain"}},
	{"the page of a proxy", awssim.Fault{Body: "<html><body><p>Please log in</p></body></html>"}},
	{"a page that says it is XML", awssim.Fault{Status: http.StatusForbidden, ContentType: "text/xml", Body: "<html><body>no</body></html>"}},
	{"an empty body", awssim.Fault{ContentType: "text/xml"}},
	{"half an answer", awssim.Fault{ContentType: "text/xml",
		Body: `<?xml version="1.0" encoding="UTF-8"?><Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reserv`}},
}

// impatient disables the retries of the SDK, because its pauses are long.
func (w *world) impatient() {
	once := aws.NopRetryer{}
	w.clients.EC2 = ec2.New(w.clients.EC2.Options(), func(o *ec2.Options) { o.Retryer = once })
	w.clients.SSM = ssm.New(w.clients.SSM.Options(), func(o *ssm.Options) { o.Retryer = once })
	w.clients.EKS = eks.New(w.clients.EKS.Options(), func(o *eks.Options) { o.Retryer = once })
	w.clients.IAM = iam.New(w.clients.IAM.Options(), func(o *iam.Options) { o.Retryer = once })
}

// A response that is not from AWS has no effect: no machine is considered gone, no machine is launched twice, no class
// loses its resolved resources.
func TestGarbledAnswers(t *testing.T) {
	for _, garble := range garbles {
		t.Run(garble.name, func(t *testing.T) {
			t.Parallel() // mostly waits
			w := newWorld(t, "m5.large")
			w.impatient()
			p := w.provider(t)
			claim := w.launched(t, p, "there")
			inject := func(action string, count int) {
				t.Helper()
				f := garble.Fault
				f.Kind, f.Action, f.Count = awssim.FaultGarble, action, count
				_, err := w.sim.Inject(f)
				check(t, err)
			}
			// 1. The machines exist, although they cannot be read.
			inject("DescribeInstances", 20)
			if listed, err := p.Machines(t.Context()); err == nil {
				t.Errorf("%d machines are listed, want an error", len(listed))
			}
			if _, err := p.Machine(t.Context(), claim.Status.ProviderID); err == nil || errors.Is(err, cloud.ErrNotFound) {
				t.Errorf("the machine: error %v, want one other than ErrNotFound", err)
			}
			w.sim.Clear(0)
			// 2. One launch, whatever its response.
			inject("CreateFleet", 1)
			bought := w.launched(t, p, "bought")
			if bought.Status.ProviderID == claim.Status.ProviderID {
				t.Error("both claims have the same machine")
			}
			if alive := len(w.sim.Instances()); alive != 2 {
				t.Errorf("%d machines for two claims", alive)
			}
			w.sim.Clear(0)
			// 3. The resolved resources of the class remain.
			inject("", 0)
			w.clock.skip(time.Hour)
			before := w.class(t, "default")
			r := &class.Reconciler{Client: w.api, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, Now: w.clock.Now,
				DryRun: &class.DryRun{EC2: w.clients.EC2, Calls: p.sources.Calls, Cluster: testCluster}}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}}); discovery.KindOf(err) != discovery.Transient {
				t.Errorf("reconciling the class: %v, want a temporary error", err)
			}
			after := w.class(t, "default")
			for _, condition := range []string{awsv1.ConditionAMIsReady, awsv1.ConditionSubnetsReady,
				awsv1.ConditionSecurityGroupsReady, awsv1.ConditionInstanceProfileReady} {
				if c := after.Condition(condition); !c.IsTrue() {
					t.Errorf("%s is %s: %s", condition, c.Status, c.Message)
				}
			}
			if len(after.Status.AMIs) != len(before.Status.AMIs) || len(after.Status.Subnets) != len(before.Status.Subnets) {
				t.Error("the class has lost its resolved resources")
			}
		})
	}
}
