// TorporAPI
