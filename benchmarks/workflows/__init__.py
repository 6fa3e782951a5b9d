"""What composing jobs costs: groups, fan-ins and chains beside plain jobs in the same run, at growing sizes."""
