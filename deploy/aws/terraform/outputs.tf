output "node_role_name" {
  description = "For spec.role of every EC2NodeClass."
  value       = aws_iam_role.node.name
}

output "controller_role_arn" {
  description = "With irsa for the chart's serviceAccount.annotations.eks.amazonaws.com/role-arn; Pod Identity needs no mention."
  value       = aws_iam_role.controller.arn
}

output "queue_name" {
  description = "For the chart's settings.interruptionQueue."
  value       = aws_sqs_queue.interruption.name
}
