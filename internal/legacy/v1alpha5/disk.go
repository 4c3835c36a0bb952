package v1alpha5

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// volumeSize matches the size of a volume in a class.
var volumeSize = regexp.MustCompile(`^[1-9][0-9]*(Gi|G|Ti|T)$`)

// bareSize matches a number without a unit that can only mean GiB.
var bareSize = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)

// readDisks returns the block device mappings.
func (c *cloudPart) readDisks() []awsv1.BlockDeviceMapping {
	const name = "blockDeviceMappings"
	var disks []awsv1.BlockDeviceMapping
	for i, mapping := range listOf[map[string]any](c.section, name) {
		at := fmt.Sprintf("%s[%d]", c.at(name), i)
		if ebs, ok := mapping["ebs"].(map[string]any); ok && ebs["volumeSize"] != nil {
			ebs = maps.Clone(ebs)
			ebs["volumeSize"] = c.diskSize(at+".ebs.volumeSize", ebs["volumeSize"])
			mapping["ebs"] = ebs
		}
		var disk awsv1.BlockDeviceMapping
		if err := recode(mapping, &disk, at, c.notes); err != nil {
			c.impossible(at, "cannot be parsed: %v", err)
			continue
		}
		disks = append(disks, disk)
	}
	return disks
}

// diskSize returns a size in a unit that a class supports. Sizes in other units are rounded up to whole GiB.
func (c *cloudPart) diskSize(at string, value any) any {
	text, _ := scalar(value)
	if volumeSize.MatchString(text) {
		return text
	}
	if bareSize.MatchString(text) {
		c.notes.add(Repaired, at, "EC2NodeClass spec.blockDeviceMappings", "is %s, want a quantity with a unit; set to %sGi", text, text)
		return text + "Gi"
	}
	amount, err := karpv1.ParseQuantity(text)
	if err != nil || amount.Sign() <= 0 {
		return value // the API server reports what is wrong with it
	}
	const gibi = int64(1) << 30
	rounded := strconv.FormatInt((amount.Value()-1)/gibi+1, 10) + "Gi"
	c.notes.add(Changed, at, "EC2NodeClass spec.blockDeviceMappings", "is %s, want an integer number of Gi; set to %s", text, rounded)
	return rounded
}
