package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

const testQueue = "interruptions"

// ward is a simulated AWS and a cluster without problems: a class, a pool that may launch spot instances, and an
// instance.
type ward struct {
	*world
	t *testing.T
	// change modifies the options of the provider that runs the examination.
	change []func(*Options)
}

func newWard(t *testing.T) *ward {
	t.Helper()
	w := newBareWard(t)
	w.launched(t, w.provider(t), "claim")
	return w
}

// newBareWard returns a ward without an instance, and so with an empty queue.
func newBareWard(t *testing.T) *ward {
	t.Helper()
	options := quick()
	options.Queue = testQueue
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	transport := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	w := &ward{world: newWorldOf(t, options, connection{listener, transport, "http://" + listener.Addr().String()}, "m5.large"), t: t}
	pool := &karpv1.NodePool{}
	pool.Name = "pool"
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	check(t, w.api.Create(t.Context(), pool))
	unready := w.class(t, "unready") // belongs to other tests
	check(t, w.api.Delete(t.Context(), unready))
	return w
}

// examine returns the findings of the provider, as "Code object", and their full text.
func (w *ward) examine() (codes []string, text string) {
	w.t.Helper()
	p := w.provider(w.t, append([]func(*Options){func(o *Options) {
		o.Queue, o.Clock, o.Clients = testQueue, clock.RealClock{}, w.patient()
	}}, w.change...)...)
	for _, f := range p.Examine(w.t.Context()) {
		codes = append(codes, f.Code+" "+f.Object)
		text += fmt.Sprintf("%+v\n", f)
		switch {
		case f.Problem == "":
			w.t.Errorf(`an incomplete finding: f.Problem is "", %+v`, f)
		case f.Fix == "":
			w.t.Errorf(`an incomplete finding: f.Fix is "", %+v`, f)
		case f.Object == "":
			w.t.Errorf(`an incomplete finding: f.Object is "", %+v`, f)
		}
	}
	return codes, text
}

// fault injects a fault into AWS.
func (w *ward) fault(f awssim.Fault) (heal func()) {
	w.t.Helper()
	id, err := w.sim.Inject(f)
	check(w.t, err)
	return func() { w.sim.Clear(id) }
}

// edit modifies the class.
func (w *ward) edit(change func(*awsv1.EC2NodeClass)) (heal func()) {
	w.t.Helper()
	before := w.class(w.t, "default")
	after := before.DeepCopy()
	change(after)
	after.Generation++
	check(w.t, w.api.Update(w.t.Context(), after))
	status := after.DeepCopy()
	change(status)
	check(w.t, w.api.Status().Update(w.t.Context(), status))
	return func() {
		w.t.Helper()
		now := w.class(w.t, "default")
		now.Spec, now.Status = before.Spec, before.Status
		check(w.t, w.api.Update(w.t.Context(), now.DeepCopy()))
		now.ResourceVersion = w.class(w.t, "default").ResourceVersion
		check(w.t, w.api.Status().Update(w.t.Context(), now))
	}
}

func cni(settings discovery.CNI) func(context.Context) (discovery.CNI, error) {
	return func(context.Context) (discovery.CNI, error) { return settings, nil }
}

// with modifies the options of the provider that runs the examination.
func (w *ward) with(change func(*Options)) (heal func()) {
	w.change = append(w.change, change)
	return func() { w.change = nil }
}

// sickness is a fault and its expected findings.
type sickness struct {
	name  string
	found []string
	about string
	fall  func() (heal func())
}

func (w *ward) sicknesses() []sickness {
	deny := func(service, action string) func() func() {
		return func() func() { return w.fault(awssim.Fault{Kind: awssim.FaultDeny, Service: service, Action: action}) }
	}
	profile := func() *string { return aws.String(w.class(w.t, "default").Status.InstanceProfile) }
	role := aws.String("KarpenterNodeRole-" + testCluster)
	giveRole := func() {
		_, err := w.clients.IAM.AddRoleToInstanceProfile(context.Background(),
			&iam.AddRoleToInstanceProfileInput{InstanceProfileName: profile(), RoleName: role})
		check(w.t, err)
	}
	takeRole := func() {
		_, err := w.clients.IAM.RemoveRoleFromInstanceProfile(context.Background(),
			&iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: profile(), RoleName: role})
		check(w.t, err)
	}
	return []sickness{
		{"no answer", []string{"CloudUnreachable aws"}, "AWS does not answer", func() func() {
			return w.with(func(o *Options) {
				o.Clients = ClientsOf(aws.Config{Region: "us-east-1", HTTPClient: &http.Client{}, BaseEndpoint: aws.String("http://127.0.0.1:1"),
					RetryMaxAttempts: 1,
					Credentials:      credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", "")})
			})
		}},
		{"a region that does not exist", []string{"CloudUnreachable aws"}, `the AWS region "us-esat-1" does not exist`, func() func() {
			config := w.config
			config.Region = "us-esat-1"
			return w.with(func(o *Options) { o.Region, o.Clients = config.Region, ClientsOf(config) })
		}},
		{"expired credentials", []string{"CloudUnreachable aws"}, "does not accept the credentials", func() func() {
			w.sim.ExpireCredentials("AKIDTEST")
			return func() { w.sim.RenewCredentials("AKIDTEST") }
		}},
		{"the clock", []string{"CloudClockSkew clock"}, "differ by 3m", func() func() {
			return w.with(func(o *Options) { o.Clock = testclock.NewFakeClock(time.Now().Add(3 * time.Minute)) })
		}},
		{"no permission to read subnets", []string{"CloudPermissionDenied ec2:DescribeSubnets"},
			"is not allowed to call ec2:DescribeSubnets, for discovery: ",
			deny("ec2", "DescribeSubnets")},
		{"no permission to read images", []string{"CloudPermissionDenied ec2:DescribeImages"}, "UnauthorizedOperation",
			deny("ec2", "DescribeImages")},
		{"no permission for fleets", []string{"CloudPermissionDenied ec2nodeclass/default"}, "CreateFleet", deny("ec2", "CreateFleet")},
		{"no permission to end instances", []string{"CloudPermissionDenied ec2:TerminateInstances"}, "TerminateInstances",
			deny("ec2", "TerminateInstances")},
		{"no permission to tag", []string{"CloudPermissionDenied ec2:CreateTags"}, "CreateTags", deny("ec2", "CreateTags")},
		{"no permission for image ids", []string{"CloudPermissionDenied ssm:GetParameter"}, "GetParameter", deny("ssm", "GetParameter")},
		{"no permission for profiles", []string{"CloudPermissionDenied iam:GetInstanceProfile"}, "GetInstanceProfile",
			deny("iam", "GetInstanceProfile")},
		{"no permission for prices", []string{"CloudPermissionDenied pricing:GetProducts"}, "GetProducts", deny("pricing", "GetProducts")},
		{"no permission to receive", []string{"CloudPermissionDenied sqs:ReceiveMessage"},
			"sqs:ReceiveMessage, for interruption notices (--interruption-queue): ", deny("sqs", "ReceiveMessage")},
		{"no permission to delete messages", []string{"CloudPermissionDenied sqs:DeleteMessage"}, "DeleteMessage",
			deny("sqs", "DeleteMessageBatch")},
		{"no queue", []string{"QueueMissing queue/elsewhere"}, `the queue "elsewhere" does not exist`,
			func() func() { return w.with(func(o *Options) { o.Queue = "elsewhere" }) }},
		{"no such cluster", []string{"ClusterUnknown cluster/elsewhere"}, `EKS has no cluster "elsewhere"`, func() func() {
			return w.with(func(o *Options) {
				o.Cluster, o.NoDryRun = "elsewhere", true
				o.Kubernetes = discovery.Kubernetes{CABundle: "UEVN", Version: func(context.Context) (string, error) { return "1.36", nil }}
			})
		}},
		{"another cluster", []string{"ClusterDiffers cluster/sandbox"},
			"EKS reports Kubernetes 1.36 for cluster sandbox, and this API server has 1.35", func() func() {
				return w.with(func(o *Options) {
					o.Kubernetes = discovery.Kubernetes{Version: func(context.Context) (string, error) { return "v1.35.2", nil }}
				})
			}},
		{"the clock, and an API server that does not answer", []string{"CannotLook cluster/sandbox", "CloudClockSkew clock"},
			"no version today", func() func() {
				return w.with(func(o *Options) {
					o.Clock = testclock.NewFakeClock(time.Now().Add(3 * time.Minute))
					o.Kubernetes = discovery.Kubernetes{Version: func(context.Context) (string, error) { return "", errors.New("no version today") }}
				})
			}},
		{"no permission to ask EKS", []string{"CloudPermissionDenied eks:DescribeCluster"}, "is not allowed to call eks:DescribeCluster",
			deny("eks", "DescribeCluster")},
		{"a version of tomorrow", []string{"ImagesMissing ec2nodeclass/default", "VersionUntried cluster/sandbox"},
			"tested versions are 1.26 to 1.37", func() func() {
				w.sim.SetCluster(awssim.Cluster{Version: "1.38"})
				return func() { w.sim.SetCluster(awssim.Cluster{Version: "1.36"}) }
			}},
		{"no subnets", []string{"SubnetsMissing ec2nodeclass/default"}, "the tags karpenter.sh/discovery=elsewhere", func() func() {
			return w.edit(func(c *awsv1.EC2NodeClass) {
				c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "elsewhere"}}}
			})
		}},
		{"prefixes that the class does not know", []string{"PodsPerNodeDiffer ec2nodeclass/default"},
			"ENABLE_PREFIX_DELEGATION=true", func() func() {
				return w.with(func(o *Options) { o.Kubernetes.CNI = cni(discovery.CNI{PrefixDelegation: true}) })
			}},
		{"interfaces that the controller does not know", []string{"PodsPerNodeDiffer ec2nodeclass/default"},
			"set --reserved-enis", func() func() {
				return w.with(func(o *Options) { o.Kubernetes.CNI = cni(discovery.CNI{CustomNetworking: true}) })
			}},
		{"full subnets", []string{"SubnetsFull ec2nodeclass/default"}, "has a free address", func() func() {
			take := func(n int) {
				for _, s := range w.sim.Subnets() {
					check(w.t, w.sim.TakeAddresses(s.ID, n))
				}
			}
			take(100_000)
			return func() { take(-100_000) }
		}},
		{"no security groups", []string{"SecurityGroupsMissing ec2nodeclass/default"},
			"no security group has the id sg-1, or the name elsewhere", func() func() {
				return w.edit(func(c *awsv1.EC2NodeClass) {
					c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: "sg-1"}, {Name: "elsewhere"}}
				})
			}},
		{"no images", []string{"ImagesMissing ec2nodeclass/default"}, "no image for Kubernetes 1.36", func() func() {
			family := awsv1.FamilyAL2023
			return w.edit(func(c *awsv1.EC2NodeClass) {
				c.Spec.AMIFamily, c.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{ID: "ami-0123456789abcdef0"}}
			})
		}},
		{"no profile", []string{"ProfileMissing ec2nodeclass/default"}, `the instance profile "elsewhere" does not exist`, func() func() {
			return w.edit(func(c *awsv1.EC2NodeClass) {
				c.Spec.Role, c.Spec.InstanceProfile = "", aws.String("elsewhere")
			})
		}},
		{"a profile without a role", []string{"ProfileWithoutRole ec2nodeclass/default"}, "wants KarpenterNodeRole-sandbox",
			func() func() { takeRole(); return giveRole }},
		{"no role for spot", []string{"SpotRoleMissing role/AWSServiceRoleForEC2Spot"}, "create-service-linked-role", func() func() {
			w.sim.RemoveRole("AWSServiceRoleForEC2Spot")
			return func() { w.sim.AddRole("/aws-service-role/spot.amazonaws.com/", "AWSServiceRoleForEC2Spot") }
		}},
		{"a launch that EC2 refuses", []string{"LaunchRefused ec2nodeclass/default"}, "sg-0123456789abcdef0", func() func() {
			return w.edit(func(c *awsv1.EC2NodeClass) {
				c.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: "sg-0123456789abcdef0"}}
			})
		}},
		{"a lost tag", []string{"TagsMissing nodeclaim/claim"}, "the controller treats it as gone", func() func() {
			tag := func(value string) {
				id, _ := instanceOf(w.claimNow().Status.ProviderID)
				_, err := w.clients.EC2.CreateTags(context.Background(),
					&ec2.CreateTagsInput{Resources: []string{id}, Tags: []ec2types.Tag{{Key: aws.String(awsv1.TagCluster), Value: &value}}})
				check(w.t, err)
			}
			tag("elsewhere")
			return func() { tag(testCluster) }
		}},
		{"AWS does not answer something", []string{"CannotLook sqs:GetQueueUrl"}, "AWS did not respond", func() func() {
			return w.fault(awssim.Fault{Kind: awssim.FaultFail, Service: "sqs", Action: "GetQueueUrl", Code: "SomethingElse",
				Status: http.StatusBadRequest})
		}},
	}
}

func (w *ward) claimNow() *karpv1.NodeClaim {
	w.t.Helper()
	var claims karpv1.NodeClaimList
	check(w.t, w.api.List(context.Background(), &claims))
	return &claims.Items[0]
}

// TestExamine checks that there are no findings without a fault, and that each fault results in its own codes and no
// others, until it is removed.
func TestExamine(t *testing.T) {
	w := newWard(t)
	healthy := func() {
		t.Helper()
		if codes, text := w.examine(); len(codes) > 0 {
			t.Fatalf("there is no fault, but the findings are\n%s", text)
		}
	}
	healthy()
	seen := map[string]bool{}
	for _, ill := range w.sicknesses() {
		t.Run(ill.name, func(t *testing.T) {
			heal := ill.fall()
			codes, text := w.examine()
			if diff := cmp.Diff(ill.found, codes); diff != "" || !strings.Contains(text, ill.about) {
				t.Errorf("(-want +got):\n%s\nwant %q in\n%s", diff, ill.about, text)
			}
			heal()
		})
		for _, f := range ill.found {
			seen[strings.Fields(f)[0]] = true
		}
	}
	healthy()
	// Every code has a test case and a row in the documentation, which has no other rows.
	codes := []string{CloudUnreachable, CloudPermissionDenied, CloudClockSkew, ClusterUnknown, ClusterDiffers,
		VersionUntried, QueueMissing, SubnetsMissing,
		SubnetsFull, SecurityGroupsMissing, ImagesMissing, ProfileMissing, ProfileWithoutRole, SpotRoleMissing, LaunchRefused,
		PodsPerNodeDiffer, TagsMissing}
	for _, code := range append(codes, CannotLook) {
		if !seen[code] {
			t.Errorf("no case has the code %s", code)
		}
	}
	page, err := os.ReadFile(root + "/docs/doctor.md")
	check(t, err)
	_, ours, _ := strings.Cut(string(page), "\n## In AWS\n")
	if !strings.Contains(ours, discovery.SupportedVersions) {
		t.Errorf("docs/doctor.md does not have the tested versions %s", discovery.SupportedVersions)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(ours, -1) {
		rows = append(rows, row[1])
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(codes)), slices.Sorted(slices.Values(rows))); diff != "" {
		t.Errorf("-code +docs/doctor.md:\n%s", diff)
	}
}

// TestExamineTriesEveryAction checks that each action of a feature is tried when the feature is on, and none of a feature
// that is off, unless another one needs it.
func TestExamineTriesEveryAction(t *testing.T) {
	untried := []string{ // without a change, these cannot be tried
		"ec2:DeleteLaunchTemplate", "iam:AddRoleToInstanceProfile", "iam:CreateInstanceProfile", "iam:DeleteInstanceProfile",
		"iam:PassRole", "iam:RemoveRoleFromInstanceProfile", "iam:TagInstanceProfile",
	}
	w := newWard(t)
	class := w.class(t, "default")
	class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{InstanceMatchCriteria: "targeted"}}
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "racks"}
	check(t, w.api.Update(t.Context(), class))
	tried := func(change func(*Options)) []string {
		var mutex sync.Mutex
		actions := map[string]bool{}
		heal := w.with(func(o *Options) {
			change(o)
			o.Observer.Called = func(c call.Call) {
				mutex.Lock()
				defer mutex.Unlock()
				actions[strings.ToLower(c.Service)+":"+c.Operation] = true
			}
		})
		defer heal()
		w.examine()
		return slices.Sorted(maps.Keys(actions))
	}
	want := slices.DeleteFunc(actionsOf(Features()), func(action string) bool { return slices.Contains(untried, action) })
	if diff := cmp.Diff(want, tried(func(o *Options) { o.ZonalShift, o.Commitments = true, func([]pricerule.Rule) {} })); diff != "" {
		t.Errorf("every feature is on: -actions +tried:\n%s", diff)
	}
	want = slices.DeleteFunc(want, func(action string) bool {
		name := featureOf(action).Name
		return name == "interruption notices" || name == "on-demand prices" || name == "doctor's check of the role of spot" ||
			name == "instance profiles" || name == "capacity reservations" ||
			name == "zonal shift" || name == "commitments"
	})
	if diff := cmp.Diff(want, tried(func(o *Options) { o.Queue, o.IsolatedVPC, o.OpenReservations = "", true, true })); diff != "" {
		t.Errorf("what can be off is off: -actions +tried:\n%s", diff)
	}
}

// A message that the examination receives stays in the queue, and can be received again long before the queue's default
// timeout of 30 seconds.
func TestExamineLeavesMessages(t *testing.T) {
	w := newBareWard(t)
	url, err := w.clients.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(testQueue)})
	check(t, err)
	sent, err := w.clients.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: aws.String("{}")})
	check(t, err)
	if codes, text := w.examine(); len(codes) > 0 {
		t.Errorf("findings\n%s", text)
	}
	// The queue responds as soon as the message is visible.
	out, err := w.patient().SQS.ReceiveMessage(t.Context(),
		&sqs.ReceiveMessageInput{QueueUrl: url.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 10,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameApproximateReceiveCount}})
	check(t, err)
	left := out.Messages
	if len(left) != 1 || *left[0].MessageId != *sent.MessageId {
		t.Fatalf("received %v within 10 seconds, want the message %s", left, *sent.MessageId)
	}
	if n := left[0].Attributes["ApproximateReceiveCount"]; n != "2" {
		t.Errorf("received %s times: the examination did not receive it", n)
	}
}

func TestMayLaunchSpot(t *testing.T) {
	for _, c := range []struct {
		operator karpv1.Operator
		values   []string
		want     bool
	}{
		{"", nil, true}, {karpv1.OperatorIn, []string{"on-demand"}, false}, {karpv1.OperatorIn, []string{"spot", "on-demand"}, true},
		{karpv1.OperatorNotIn, []string{"spot"}, false}, {karpv1.OperatorExists, nil, true},
	} {
		var pool karpv1.NodePool
		pool.Spec.Template.Spec.NodeClassRef.Group = awsv1.Group
		if c.operator != "" {
			pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{{Key: karpv1.LabelCapacityType, Operator: c.operator, Values: c.values}}
		}
		if got := allowsSpot(pool); got != c.want {
			t.Errorf("%s %v: %v", c.operator, c.values, got)
		}
		pool.Spec.Template.Spec.NodeClassRef.Group = "karpenter.kwok.sh"
		if allowsSpot(pool) {
			t.Error("a pool of another cloud provider may launch spot instances")
		}
	}
}
